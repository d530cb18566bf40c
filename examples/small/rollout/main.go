// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
)

// content is an Updater whose node runs the revision that a file holds.
type content struct{ file string }

// Observe returns the revision that the node runs.
func (c content) Observe(context.Context) (nodeagent.Observation, error) {
	text, err := os.ReadFile(c.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // no file is no revision
		return nodeagent.Observation{}, err
	}
	boot, err := nodeagent.BootID()
	return nodeagent.Observation{Current: protocol.ParseRevision(string(text)), BootID: boot}, err
}

// Prepare fetches a revision ahead.
func (c content) Prepare(context.Context, protocol.Revision) error { return nil }

// Apply brings the node to a revision.
func (c content) Apply(_ context.Context, a nodeagent.Attempt) error {
	return os.WriteFile(c.file, []byte(a.Revision.String()), 0o600)
}

// Verify reports whether the node is well.
func (c content) Verify(context.Context, nodeagent.Attempt) (nodeagent.Health, error) {
	return nodeagent.Health{Verdict: nodeagent.Pass}, nil
}

// Revert brings the node back to a revision that it has run before.
func (c content) Revert(ctx context.Context, a nodeagent.Attempt) error { return c.Apply(ctx, a) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("NODE_NAME"), "state"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, node, dir string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")) // without the variable, the pod's own
	if err != nil {
		return err
	}
	if node == "" {
		return kube.RunController(ctx, config, kube.ControllerOptions{Domain: "default"})
	}
	return runAgent(ctx, config, node, dir)
}

func runAgent(ctx context.Context, config *rest.Config, node, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	store, err := checkpoint.Open(filepath.Join(dir, "records"), checkpoint.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	return kube.RunAgent(ctx, config, kube.AgentOptions{
		Node: node, Agent: nodeagent.Options{Disk: store, Updater: content{filepath.Join(dir, "content")}},
	})
}
