// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/belayproject/belay/internal/testenv/kubeconfig"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/internal/tier"
)

// TestEndsInEveryWay starts the command, uses the kubeconfig that it prints, and ends it in each way that the demo
// or a user can.
func TestEndsInEveryWay(t *testing.T) {
	program := filepath.Join(t.TempDir(), "controlplane")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v\n%s", err, out)
	}
	signal := func(s os.Signal) func(*exec.Cmd, io.Closer) error {
		return func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(s) }
	}
	for name, c := range map[string]struct {
		argv []string
		end  func(cmd *exec.Cmd, stdin io.Closer) error
	}{
		"terminate": {[]string{program}, signal(syscall.SIGTERM)},
		"interrupt": {[]string{program}, signal(os.Interrupt)},
		"kill":      {[]string{program}, signal(os.Kill)},
		"input":     {[]string{program, "-stdin"}, func(_ *exec.Cmd, stdin io.Closer) error { return stdin.Close() }},
		// The shell is the parent, and it is what dies.
		"parent": {[]string{"sh", "-c", program + " & wait"}, signal(os.Kill)},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "kill" && name != "input" && name != "terminate" {
				tier.LeaveToProofs(t, "an interrupt ends it as SIGTERM does, and the end of its parent as a kill does")
			}
			cmd := exec.Command(c.argv[0], c.argv[1:]...)
			stdin, path := testproc.Start(t, cmd)
			answers(t, path)
			if err := c.end(cmd, stdin); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Dir(path)
			if err := testproc.Poll(20*time.Second, func() error { return gone(dir) }); err != nil {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

func answers(t *testing.T, path string) {
	t.Helper()
	config, err := kubeconfig.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ServerVersion(); err != nil {
		t.Errorf("the printed kubeconfig does not reach an API server: %v", err)
	}
}

// gone returns an error while the directory is there or a process names it.
func gone(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("directory %q exists (%w)", dir, err)
	}
	if left := testproc.Naming(dir); len(left) > 0 {
		return fmt.Errorf("processes are left: %q", left)
	}
	return nil
}
