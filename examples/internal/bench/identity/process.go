// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// hearing is how long a process may take to say something.
const hearing = time.Minute

// A process is this program as a child, which takes orders and answers, a line each.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // closed when the process says no more
}

// process starts a child.
func (w *world) process(ctx context.Context, mode string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self, append([]string{"-child=" + mode}, args...)...), lines: make(chan string, 1)}
	p.cmd.Stderr = os.Stderr
	w.env.Mark(p.cmd)
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a process: %w", err)
	}
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	}()
	return p, nil
}

// hear waits for a line.
func (p *process) hear(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, hearing)
	defer cancel()
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "", errors.New("the process has ended")
		}
		return line, nil
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for a process: %w", ctx.Err())
	}
}

// ask gives an order and reads the answer.
func (p *process) ask(ctx context.Context, order string, answer any) error {
	if _, err := fmt.Fprintln(p.in, order); err != nil {
		return fmt.Errorf("giving the order %q: %w", order, err)
	}
	line, err := p.hear(ctx)
	if err != nil {
		return fmt.Errorf("order %q: %w", order, err)
	}
	return json.Unmarshal([]byte(line), answer)
}

// kill ends the process as kill -9 does.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing a process: %w", err)
	}
	for range p.lines { // until nothing reads its output any more, as Wait wants it
	}
	_ = p.cmd.Wait() // it was killed, and says so
	return nil
}

// A role is what a child works with.
type role struct {
	client    kubernetes.Interface
	wire      *wire // of the client
	namespace string
	args      []string
}

// beChild is what this process does as a child: the arguments are a kubeconfig, a namespace and what the mode needs besides.
func beChild(ctx context.Context, mode string, args []string) error {
	modes := map[string]func(ctx context.Context, r role) error{
		"count": countVersions, "view": runView, "member": runMember, "helpers": runHelpers, "election": runElection,
	}
	run, ok := modes[mode]
	if !ok || len(args) < 2 {
		return errors.New("there is no such mode, or it has no kubeconfig and namespace")
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	r := role{wire: &wire{}, namespace: args[1], args: args[2:]}
	if r.client, err = kubernetes.NewForConfig(r.wire.client(fast(config))); err != nil {
		return err
	}
	return run(ctx, r)
}

// obey answers each order until there are no more.
func obey(answer func(order string) (any, error)) error {
	encoder := json.NewEncoder(os.Stdout)
	for scanner := bufio.NewScanner(os.Stdin); scanner.Scan(); {
		a, err := answer(scanner.Text())
		if err != nil {
			return err
		}
		if err := encoder.Encode(a); err != nil {
			return err
		}
	}
	return nil
}
