// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package crew

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belayproject/belay/examples/demo/internal/nodeprocess"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/examples/internal/proc"
)

const (
	callTimeout  = 2 * time.Second // of one question to an agent or a process
	childGrace   = 3 * time.Second // that an agent gives its child
	agentGrace   = 10 * time.Second
	logTailBytes = 1 << 10
)

// Options of a crew.
type Options struct {
	// Agent is the path of the reference agent, Self that of the demo, which is also the child.
	Agent, Self string
	// Kubeconfig is what the agents talk to the API server with.
	Kubeconfig string
	// Dir is the directory below which each node has its own. It must exist.
	Dir string
	// Init is the init config of every node.
	Init string
	// HealthzPort is where the children serve healthz.
	HealthzPort int
}

// A Node is one node: an agent and what it supervises. Its fields must not be changed.
type Node struct {
	Name string
	// Address is the loopback address that the node has for itself.
	Address string

	options Options
	kubelet []string
	dir     string
	agent   *proc.Process
}

// Start starts the agent of a node that the API server knows by name.
// kubelet is the command of a real one, without --config and with --config-dir; empty means that a stand-in is run.
func Start(o Options, name, address string, kubelet []string) (*Node, error) {
	n := &Node{Name: name, Address: address, options: o, kubelet: kubelet, dir: filepath.Join(o.Dir, name)}
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of node %q: %w", name, err)
	}
	if err := os.WriteFile(n.path("init.yaml"), []byte(o.Init), 0o600); err != nil {
		return nil, fmt.Errorf("writing the init config of node %q: %w", name, err)
	}
	log, err := os.OpenFile(n.path("agent.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of node %q: %w", name, err)
	}
	defer log.Close() // the agent has its own handle
	cmd := exec.Command(o.Agent, n.arguments()...)
	cmd.Stdout, cmd.Stderr = log, log
	n.agent, err = proc.Start("the agent of "+name, cmd)
	return n, err
}

// arguments are those of the agent, and after -- the child's. What is the node's own, its address, is a flag of the
// child.
func (n *Node) arguments() []string {
	agent, child := n.standInArguments()
	if len(n.kubelet) > 0 {
		agent, child = n.kubeletArguments()
	}
	return slices.Concat([]string{
		"run", "--node-name=" + n.Name, "--kubeconfig=" + n.options.Kubeconfig, "--source=nodeconfig", "--key=kubelet",
		"--state-dir=" + n.path("state"), "--init-config=" + n.path("init.yaml"),
		"--health-url=http://" + n.Address + ":{healthzPort}/healthz", "--probe-interval=250ms",
		"--min-trial=1s", "--max-trial=5m", "--default-trial=10s", "--crash-loop-threshold=2",
		"--backoff-min=1s", "--backoff-max=2s", "--retry-min=250ms", "--retry-max=2s", "--grace=" + childGrace.String(),
		"--node-probes=false", // a node of the demo is a process
	}, agent, []string{
		"--", n.options.Self, "node-process", "--address=" + n.Address, "--journal=" + n.path("journal"),
	}, child)
}

// checkScript has the stand-in check a config, as nginx -t does. It ends with the status of the stand-in. The shell is
// there because an agent runs no program for this that a group may write to, and some machines build such files.
const checkScript = `exec "$0" node-process --check --config="$1"`

// standInArguments returns the arguments for a child that stands in for a kubelet. It reads the file that the agent
// renders, and the agent has it check a config before it adopts it.
func (n *Node) standInArguments() (agent, child []string) {
	render := n.path("kubelet.yaml")
	return []string{
		"--render=" + render, "--prove-kubelet=none", "--prove-show-output", "--prove-command=/bin/sh",
		"--prove-arg=-c", "--prove-arg=" + checkScript, "--prove-arg=" + n.options.Self, "--prove-arg={config}",
	}, []string{"--config=" + render}
}

// kubeletArguments returns the arguments for a child that runs a kubelet. That has a directory of drop-ins, in which
// its machine has its own part, and where the agent lays the config. The agent has this kubelet judge a config before
// it adopts it.
func (n *Node) kubeletArguments() (agent, child []string) {
	agent = []string{"--prove-kubelet=" + n.kubelet[0]}
	child = []string{"--config=" + n.path("init.yaml")}
	for _, arg := range n.kubelet {
		if dir, ok := strings.CutPrefix(arg, "--config-dir="); ok {
			agent = append(agent, arg)
			child = append(child, "--drop-in="+filepath.Join(dir, settings.DropIn))
		}
	}
	return agent, slices.Concat(child, []string{"--"}, n.kubelet)
}

func (n *Node) path(name string) string { return filepath.Join(n.dir, name) }

// Runs is the journal of the node's process.
func (n *Node) Runs() ([]nodeprocess.Entry, error) { return nodeprocess.ReadJournal(n.path("journal")) }

// Healthz returns nil if the node's process answers ok.
func (n *Node) Healthz(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	url := "http://" + net.JoinHostPort(n.Address, strconv.Itoa(n.options.HealthzPort)) + "/healthz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			return op.Err // without the address, which is in the table
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}

// Ended returns nil while the agent runs, and then an error that says how it ended: it must never end by itself.
func (n *Node) Ended() error { return n.agent.EndError() }

// LogTail is the end of the log of the agent and its child.
func (n *Node) LogTail() string {
	f, err := os.Open(n.path("agent.log"))
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > logTailBytes {
		_, _ = f.Seek(-logTailBytes, io.SeekEnd)
	}
	tail, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(tail))
}

// StopAll ends the agents and their children, all at once, and waits for them.
func StopAll(ctx context.Context, nodes []*Node) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { errs[i] = n.agent.Stop(ctx, agentGrace) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
