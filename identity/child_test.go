// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/kubeconfig"
)

// childEnv holds the task that makes this test binary a process with a member, and nothing else.
const childEnv = "BELAY_IDENTITY_CHILD"

// A childTask is what a child is.
type childTask struct {
	Kubeconfig, Namespace, Lock string
	Timing                      identity.Timing
}

// childMain keeps the Lease until a signal ends it, and writes a line each time that it has it.
func childMain(text string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var task childTask
	err := json.Unmarshal([]byte(text), &task)
	if err == nil {
		err = task.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (task childTask) run(ctx context.Context) error {
	config, err := kubeconfig.Read(task.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	spec := goodSpec("h")
	spec.Namespace, spec.LockFile, spec.Timing = task.Namespace, task.Lock, task.Timing
	member, err := identity.New(client.CoordinationV1().Leases(task.Namespace), spec, identity.Options{})
	if err != nil {
		return err
	}
	return member.Run(ctx, func(ctx context.Context, e identity.Epoch) error {
		fmt.Println(e.Holder)
		<-ctx.Done()
		return nil
	})
}

// A child is such a process, from outside.
type child struct {
	t       *testing.T
	cmd     *exec.Cmd
	holders chan string // as which it has the Lease
}

func (c *cluster) spawn(env *testenv.Env, timing identity.Timing) *child {
	c.Helper()
	dir := c.TempDir()
	task := childTask{Kubeconfig: filepath.Join(dir, "kubeconfig"), Namespace: c.namespace, Lock: c.lock, Timing: timing}
	if err := testenv.WriteKubeconfig(task.Kubeconfig, c.member); err != nil {
		c.Fatal(err)
	}
	text, err := json.Marshal(task)
	if err != nil {
		c.Fatal(err)
	}
	p := &child{t: c.T, cmd: exec.Command(os.Args[0]), holders: make(chan string, 10)}
	// The race detector would have it sleep for a second before its end.
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(text), "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	env.Mark(p.cmd)
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		c.Fatal(err)
	}
	go func() {
		defer close(p.holders)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.holders <- lines.Text()
		}
	}()
	return p
}

// holds waits until it has the Lease.
func (p *child) holds() string {
	p.t.Helper()
	select {
	case holder, ok := <-p.holders:
		if ok {
			return holder
		}
		p.t.Fatalf("the process has ended: %v", p.cmd.Wait())
	case <-time.After(serverPatience):
		p.t.Fatalf("after %v the process has no Lease", serverPatience)
	}
	return ""
}

// ends sends a signal, waits for the end and says how long that took.
func (p *child) ends(signal os.Signal) (time.Duration, error) {
	p.t.Helper()
	began := time.Now()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
	for range p.holders { // until its end closes the pipe
	}
	return time.Since(began), p.cmd.Wait()
}
