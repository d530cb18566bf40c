// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodetier

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/internal/testenv"
)

// Node is what one kubelet needs: credentials, directories and ports. Only one kubelet may use it at a time.
type Node struct {
	// Name is the node's name.
	Name string
	// Dir holds everything of the node.
	Dir string
	// Kubeconfig is the path of credentials for system:node:NAME in the group system:nodes.
	Kubeconfig string
	// HealthzPort answers http://127.0.0.1:PORT/healthz while the kubelet runs.
	HealthzPort int

	tier *Tier
	port int // of the kubelet's API
}

// NewNode prepares a node, without a Node object: the kubelet registers itself.
func (t *Tier) NewNode(name string) (*Node, error) {
	n := &Node{Name: name, Dir: filepath.Join(t.dir, "nodes", name), tier: t}
	if err := os.MkdirAll(n.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of node %q: %w", name, err)
	}
	config, err := t.env.NewUser("system:node:"+name, "system:nodes")
	if err != nil {
		return nil, err
	}
	n.Kubeconfig = filepath.Join(n.Dir, "kubeconfig")
	if err := testenv.WriteKubeconfig(n.Kubeconfig, config); err != nil {
		return nil, err
	}
	for _, port := range []*int{&n.port, &n.HealthzPort} {
		if *port, err = t.env.Port(); err != nil {
			return nil, err
		}
	}
	return n, t.env.WriteServerCert(filepath.Join(n.Dir, "tls.crt"), filepath.Join(n.Dir, "tls.key"), name)
}

// Config returns a KubeletConfiguration in YAML with which the kubelet runs on this machine, after the given
// top-level fields have replaced those of [Node.BaseConfig].
func (n *Node) Config(fields map[string]any) ([]byte, error) {
	config := n.BaseConfig()
	maps.Copy(config, fields)
	data, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration of node %q: %w", n.Name, err)
	}
	return data, nil
}

// BaseConfig returns the fields of a KubeletConfiguration that this machine needs. The caller owns the map.
func (n *Node) BaseConfig() map[string]any {
	barely := map[string]any{
		"memory.available": "1Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%",
	}
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		// The machine's cgroups may be of version 1, and no systemd may run.
		"failCgroupV1": false, "cgroupDriver": "cgroupfs", "cgroupRoot": n.tier.cgroup, "enforceNodeAllocatable": []string{},
		// What a root without CAP_SYS_RESOURCE may keep, and what the machine may have.
		"oomScoreAdj": 0, "failSwapOn": false, "protectKernelDefaults": false, "makeIPTablesUtilChains": false,
		// The machine's disk is shared with its other work: it must not make the node unready.
		"evictionHard": barely, "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
		// Loopback only.
		"address": "127.0.0.1", "port": n.port, "readOnlyPort": 0,
		"healthzBindAddress": "127.0.0.1", "healthzPort": n.HealthzPort,
		"tlsCertFile": filepath.Join(n.Dir, "tls.crt"), "tlsPrivateKeyFile": filepath.Join(n.Dir, "tls.key"),
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true},
			"x509": map[string]any{"clientCAFile": n.tier.env.CAFile()},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"containerRuntimeEndpoint": n.tier.Endpoint(), "resolvConf": "", "clusterDNS": []string{},
		"podLogsDir": filepath.Join(n.Dir, "logs"), "volumePluginDir": filepath.Join(n.Dir, "plugins"),
		// Quick to report, for tests that wait for it.
		"nodeStatusUpdateFrequency": "2s", "nodeStatusReportFrequency": "10s", "syncFrequency": "5s",
		"shutdownGracePeriod": "0s",
	}
}

// Args returns the kubelet's flags for a configuration at path.
func (n *Node) Args(config string) []string {
	return []string{
		"--config=" + config, "--kubeconfig=" + n.Kubeconfig, "--hostname-override=" + n.Name,
		"--root-dir=" + filepath.Join(n.Dir, "kubelet"), "--cert-dir=" + filepath.Join(n.Dir, "kubelet", "pki"),
	}
}

// KubeletCommand returns the kubelet's program, and its flags for a configuration at path.
func (n *Node) KubeletCommand(config string) (program string, args []string) {
	return n.tier.KubeletProgram(), n.Args(config)
}

// Kubelet prepares a kubelet with this configuration. Its Start waits until the kubelet calls itself healthy.
func (n *Node) Kubelet(config []byte) (*testenv.Process, error) {
	path := filepath.Join(n.Dir, "kubelet.yaml")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration of node %q: %w", n.Name, err)
	}
	argv := append([]string{n.tier.KubeletProgram()}, n.Args(path)...)
	return n.tier.env.Process("kubelet-"+n.Name, argv, n.Healthy), nil
}

// Healthy returns nil while the kubelet calls itself healthy.
func (n *Node) Healthy(ctx context.Context) error {
	url := fmt.Sprintf("http://127.0.0.1:%d/healthz", n.HealthzPort)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return nil
}
