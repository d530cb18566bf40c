// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/nodetier"
)

// read hands on the lines of in until it or ctx ends. A read that is under way when ctx ends goes on until the process does.
func read(ctx context.Context, in io.Reader, lines chan<- string) {
	for scanner := bufio.NewScanner(in); scanner.Scan(); {
		select {
		case lines <- strings.TrimSpace(scanner.Text()):
		case <-ctx.Done():
			return
		}
	}
}

const (
	// started answers the order start.
	started = "started"
	// startTime bounds a start of an API server that has run before.
	startTime = 2 * time.Minute
)

// awaitStart waits for the order to start.
func awaitStart(ctx context.Context, lines <-chan string) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case line := <-lines:
		if line != "start" {
			return fmt.Errorf("order %q: no server runs yet, want start", line)
		}
		return nil
	}
}

// orderly carries orders out.
type orderly struct {
	env  *testenv.Env
	tier *nodetier.Tier // nil until a kubelet is asked for
}

// obey does what the lines say until ctx ends.
func (o *orderly) obey(ctx context.Context, lines <-chan string) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case line := <-lines:
			answer, err := o.order(ctx, strings.Fields(line))
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("order %q: %w", line, err)
			}
			fmt.Println(answer)
		}
	}
}

// order carries out one order and returns the answer.
func (o *orderly) order(ctx context.Context, words []string) (string, error) {
	switch {
	case len(words) == 1 && words[0] == "stop":
		return "stopped", o.env.APIServer().Kill()
	case len(words) == 1 && words[0] == "start":
		ctx, cancel := context.WithTimeout(ctx, startTime)
		defer cancel()
		return started, o.env.APIServer().Start(ctx)
	case len(words) == 3 && words[0] == "kubelet":
		return o.kubelet(ctx, words[1], words[2])
	default:
		return "", errors.New("there are stop, start and kubelet NAME ADDRESS")
	}
}

// kubelet prepares a node for a kubelet. What is the machine's own is in a drop-in, so that the file that is added for --config holds
// only what nodes may share.
func (o *orderly) kubelet(ctx context.Context, name, address string) (string, error) {
	if err := nodetier.Supported(); err != nil {
		return "unsupported " + strings.Join(strings.Fields(err.Error()), " "), nil
	}
	if o.tier == nil {
		tier, err := nodetier.New(ctx, o.env)
		if err != nil {
			return "", err
		}
		o.tier = tier
	}
	node, err := o.tier.NewNode(name)
	if err != nil {
		return "", err
	}
	fields := node.BaseConfig()
	delete(fields, "healthzPort")
	fields["healthzBindAddress"] = address
	content, err := yaml.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("encoding the drop-in: %w", err)
	}
	dir := filepath.Join(node.Dir, "kubelet.conf.d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "10-machine.conf"), content, 0o600); err != nil {
		return "", err
	}
	args := slices.DeleteFunc(node.Args(""), func(arg string) bool { return strings.HasPrefix(arg, "--config=") })
	argv, err := json.Marshal(slices.Concat([]string{o.tier.KubeletProgram(), "--config-dir=" + dir}, args))
	return "kubelet " + string(argv), err
}
