// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/internal/testenv/binaries"
)

// L-CS-38, L-CS-39, C-13: what is judged is what a real kubelet makes of its own file and of all drop-ins, beside a
// config of the source and without one: one file with the merged result gives the kubelet the same config, field by
// field. What a kubelet refuses is refused, and nothing else.
func TestAKubeletMergesTheSame(t *testing.T) {
	set, err := binaries.Ensure(t.Context(), os.Stderr, binaries.Kubelet, binaries.OldKubelet)
	if err != nil {
		t.Fatal(err)
	}
	pki := t.TempDir() // a key is made once
	for _, c := range kubeletCases() {
		programs := []binaries.Name{binaries.Kubelet, binaries.OldKubelet}
		if !c.both {
			programs = programs[:1]
		}
		for _, program := range programs {
			t.Run(c.name+"/"+string(program), func(t *testing.T) {
				k := newRealKubelet(t, set[program], pki, c)
				k.compare(remote(kubeletHead+c.config), c.refused)
				local, err := k.l.Options().Init(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				k.compare(local, c.refusedAlone)
			})
		}
	}
}

// A kubeletCase is a node with drop-ins. All documents lack their head.
type kubeletCase struct {
	name, own, config     string
	dropIns               map[string]string
	both                  bool   // an older kubelet is asked too
	refused, refusedAlone string // part of what the kubelet says with the config, and without one; empty: nothing
}

func kubeletCases() []kubeletCase {
	const parallel = "maxParallelImagePulls cannot be larger than 1"
	return []kubeletCase{
		{
			name: "order", both: true, own: "maxPods: 1\npodsPerCore: 1\nregistryBurst: 1\neventBurst: 1\n", config: "registryBurst: 9\neventBurst: 9\n",
			dropIns: map[string]string{
				"10-a.conf": "podsPerCore: 2\nregistryBurst: 2\neventBurst: 2\n", "95-b.conf": "eventBurst: 4\n", "90-belay.conf.d/z.conf": "maxPods: 5\n",
				"90-c.conf": "podsPerCore: 6\n", "9/a.conf": "podsPerCore: 7\n", "99.yaml": "eventBurst: 8\n", "A.conf": "nodeStatusMaxImages: 3\n", "B.CONF": "port: 1\n",
			},
		},
		{
			name: "maps and lists", own: "clusterDNS: [10.0.0.1, 10.0.0.2]\nevictionHard: {memory.available: 1Gi, nodefs.available: 10%}\nfeatureGates: {LoggingAlphaOptions: true}\n" +
				"systemReserved: {cpu: 100m, memory: 1Gi}\nlogging: {verbosity: 1, options: {text: {infoBufferSize: 1Ki}}}\n",
			config: "clusterDNS: [10.0.0.3]\nevictionHard: {memory.available: 2Gi}\nfeatureGates: {MemoryQoS: true}\nsystemReserved: {memory: 2Gi}\n" +
				"logging: {options: {json: {infoBufferSize: 2Ki}}}\nauthentication: {webhook: {cacheTTL: 3m}}\n",
			dropIns: map[string]string{"95.conf": "clusterDNS: []\nallowedUnsafeSysctls: [a.b]\nauthentication: {anonymous: {enabled: true}}\n"},
		},
		{
			name: "null takes away", both: true, own: "maxPods: 1\nclusterDNS: [10.0.0.1]\nevictionHard: {memory.available: 1Gi, nodefs.available: 10%}\n" +
				"featureGates: {MemoryQoS: true}\ncpuCFSQuota: false\nsystemReserved: {cpu: 100m}\n",
			config: "maxPods: null\nclusterDNS: null\nevictionHard: {memory.available: null, imagefs.available: null}\nfeatureGates: {MemoryQoS: null, NodeSwap: null}\n" +
				"cpuCFSQuota: null\nsystemReserved: null\nkubeReserved: {cpu: null}\n",
			dropIns: map[string]string{"95.conf": "systemReserved: {memory: 1Gi}\n"},
		},
		{name: "zero is the default again", own: "registryBurst: 7\nregistryPullQPS: 7\nsyncFrequency: 7s\n", config: "registryBurst: 0\nregistryPullQPS: 0\nsyncFrequency: 0s\n"},
		{name: "pulls that the file leaves open", both: true, config: "maxParallelImagePulls: 3\n", refused: parallel},
		{name: "pulls that a drop-in opens", config: "maxParallelImagePulls: 3\n", dropIns: map[string]string{"95.conf": "serializeImagePulls: false\n"}},
		{name: "pulls that the file opens", own: "maxParallelImagePulls: 2\n", config: "maxParallelImagePulls: 3\n"},
		{name: "pulls that are taken back", own: "maxParallelImagePulls: 2\nserializeImagePulls: true\n", config: "serializeImagePulls: null\n", refusedAlone: parallel},
		{name: "frequency that the file leaves open", config: "nodeStatusUpdateFrequency: 20s\n"},
		{name: "frequency of the file", own: "nodeStatusUpdateFrequency: 30s\n", config: "nodeStatusUpdateFrequency: 20s\n"},
		{name: "enforcement is lost", own: "enforceNodeAllocatable: []\n", dropIns: map[string]string{"10.conf": "maxPods: 3\n"}},
		{
			name: "enforcement that comes back", own: "enforceNodeAllocatable: []\ncgroupsPerQOS: false\n", config: "enforceNodeAllocatable: []\n",
			refusedAlone: "cgroupsPerQOS (--cgroups-per-qos) must be set to true",
		},
	}
}

// A realKubelet is a real one beside the settings of an agent.
type realKubelet struct {
	*testing.T
	l                 *Local
	program, pki, dir string
}

func newRealKubelet(t *testing.T, program, pki string, c kubeletCase) *realKubelet {
	t.Helper()
	texts := map[string]string{"config.yaml": kubeletHead + "failCgroupV1: false\n" + c.own, "d/README": "no drop-in"}
	for name, text := range c.dropIns {
		texts["d/"+name] = kubeletHead + text
	}
	k := &realKubelet{T: t, program: program, pki: pki, dir: files(t, texts)}
	l := Defaults()
	l.InitConfig, l.ConfigDir = filepath.Join(k.dir, "config.yaml"), filepath.Join(k.dir, "d")
	k.l = l
	return k
}

// compare has a kubelet read what the agent writes for an object, and what the agent takes for the result.
func (k *realKubelet) compare(o configsync.Object, refused string) {
	k.Helper()
	options := k.l.Options()
	text, ok, err := kubelet.Text(options.Codec, k.l.Key, o)
	if err == nil && ok {
		err = os.WriteFile(k.l.Target(""), text, 0o600)
	} else if err == nil {
		err = os.RemoveAll(k.l.Target(""))
	}
	stack, serr := k.l.around()()
	m, merr := stack.Of(k.l.Key, o)
	single := filepath.Join(k.dir, "merged.json")
	if err := errors.Join(err, serr, merr, os.WriteFile(single, m.Doc, 0o600)); err != nil {
		k.Fatal(err)
	}
	config, says := k.run("--config="+k.l.InitConfig, "--config-dir="+k.l.ConfigDir)
	_, _, err = options.Codec.Decode(k.l.Key, o)
	if err == nil && refused != "" {
		err = k.prover().Inspect(k.Context(), k.l.Key, o)
	}
	if (refused == "") != (config != "") || !strings.Contains(says, refused) || (err == nil) != (refused == "") {
		k.Errorf("UID %q: the kubelet says %q, the agent %v, want %q of both", o.UID, says, err, refused)
		return
	}
	if whole, says := k.run("--config=" + single); whole != config {
		k.Errorf("UID %q: of its drop-ins the kubelet makes another config than of the merged result %s (%s):\n%s", o.UID, m.Doc, says, cmp.Diff(config, whole))
	}
}

// prover is what the agent asks about a merged document.
func (k *realKubelet) prover() configsync.Inspector {
	k.Helper()
	p, err := kubelet.NewProver(kubelet.ProverOptions{Program: k.program, Dir: filepath.Join(k.dir, "prover"), Document: merged(k.l.around())})
	if err != nil {
		k.Fatal(err)
	}
	return p
}

// run returns the config that a kubelet has accepted, as the kubelet logs it, and the last line of its log. The kubelet
// ends by itself: it is told to look for a lock, and not where. Kubelets from 1.37 on log the config before they
// validate it.
func (k *realKubelet) run(args ...string) (config, says string) {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), time.Minute)
	defer cancel()
	args = append(args, "--cert-dir="+k.pki, "--root-dir="+filepath.Join(k.dir, "root"), "--exit-on-lock-contention", "--v=5")
	out, err := exec.CommandContext(ctx, k.program, args...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || ctx.Err() != nil {
		k.Fatalf("the kubelet ended with %v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	says = lines[len(lines)-1]
	if !strings.Contains(says, "no lock file specified") {
		return "", says
	}
	_, rest, found := strings.Cut(string(out), `"Effective KubeletConfiguration" config=`)
	if !found {
		_, rest, _ = strings.Cut(string(out), `"KubeletConfiguration" configuration=`)
	}
	config, _, _ = strings.Cut(rest, "\n >\n")
	return config, says
}
