// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
)

// firmware is an Updater whose node runs what a file says.
type firmware struct{ file string }

func (f firmware) Observe(context.Context) (nodeagent.Observation, error) {
	text, _ := os.ReadFile(f.file) // no file is no revision
	boot, err := nodeagent.BootID()
	return nodeagent.Observation{Current: protocol.ParseRevision(string(text)), BootID: boot}, err
}

func (f firmware) Prepare(context.Context, protocol.Revision) error { return nil } // fetch it

func (f firmware) Apply(_ context.Context, a nodeagent.Attempt) error {
	return os.WriteFile(f.file, []byte(a.Revision.String()), 0o600)
}

func (f firmware) Verify(context.Context, nodeagent.Attempt) (nodeagent.Health, error) {
	return nodeagent.Health{Verdict: nodeagent.Pass}, nil
}

func (f firmware) Revert(context.Context, nodeagent.Attempt) error { return nodeagent.ErrIrreversible }

// runController is the controller of all nodes. Its Drainer is a drain.NodeDrainer where revisions are Intrusive.
func runController(ctx context.Context, config *rest.Config) error {
	return kube.RunController(ctx, config, kube.ControllerOptions{
		Domain: "firmware", Nodes: labels.SelectorFromSet(labels.Set{"fleet": "firmware"}), // percentages are of these
	})
}

// runAgent is the agent of one node.
func runAgent(ctx context.Context, config *rest.Config, node, dir string) error {
	store, err := checkpoint.Open(filepath.Join(dir, "state"), checkpoint.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	return kube.RunAgent(ctx, config, kube.AgentOptions{
		Node: node, Agent: nodeagent.Options{Disk: store, Updater: firmware{filepath.Join(dir, "firmware")}},
	})
}

// The main of both programs: the agent where NODE_NAME is set, as by the downward API.
func Example_program() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := rest.InClusterConfig() // or clientcmd.BuildConfigFromFlags
	if err != nil {
		fmt.Println(err)
		return
	}
	if node := os.Getenv("NODE_NAME"); node != "" {
		err = runAgent(ctx, config, node, "/var/lib/firmware")
	} else {
		err = runController(ctx, config)
	}
	if err != nil {
		fmt.Println(err)
	}
}
