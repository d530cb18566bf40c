// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// A command that the program adds logs as it does elsewhere. One of this package says itself what goes wrong, and what
// client-go logs beside it is dropped.
func TestRunLeavesTheLogToAddedCommands(t *testing.T) {
	var log bytes.Buffer
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(klog.ClearLogger)
	inventory := func(func() (*rest.Config, error)) *cobra.Command {
		return &cobra.Command{Use: "inventory", Run: func(c *cobra.Command, _ []string) {
			klog.FromContext(c.Context()).Info("counted")
		}}
	}
	run := func(args ...string) int {
		c := newCommand(&bytes.Buffer{}, &bytes.Buffer{}, WithCommand(inventory))
		c.SetArgs(args)
		return Run(c)
	}
	if code := run("inventory"); code != exitDone || !strings.Contains(log.String(), "counted") {
		t.Errorf("inventory: code %d, log %q, want 0 and what it logs", code, log.String())
	}
	log.Reset()
	if code := run("status", "--kubeconfig=/does/not/exist"); code != exitError {
		t.Errorf("status: code %d, want %d", code, exitError)
	}
	if klog.Info("of a watch"); log.Len() > 0 {
		t.Errorf("status logs %q, want nothing", log.String())
	}
}
