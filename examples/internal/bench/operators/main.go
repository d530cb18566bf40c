// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain/draintest/operators"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/examples/internal/bench/kubectldrain"
	"github.com/belayproject/belay/internal/testenv"
)

// A side is one library that drains; kubectl stands for k8s.io/kubectl/pkg/drain.
type side struct {
	name  string
	drain operators.Drain
}

func main() {
	patience := flag.Duration("timeout", 3*time.Minute, "how long one drain may take")
	only := flag.String("side", "", "run only this one: belay or kubectl")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only, *patience); err != nil {
		fmt.Fprintln(os.Stderr, "bench operators:", err)
		stop()
		os.Exit(2) //nolint:gocritic // stop has run
	}
}

func run(ctx context.Context, only string, patience time.Duration) (err error) {
	env, err := testenv.New(ctx, testenv.Options{
		With: []testenv.Component{testenv.ControllerManager},
		Args: map[testenv.Component][]string{testenv.ControllerManager: {"--controllers=disruption-controller"}},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	for _, s := range []side{{"belay", drainByBelay}, {"kubectl", drainByKubectl}} {
		if only != "" && only != s.name {
			continue
		}
		rows, err := runAll(ctx, env.Config(), s, patience)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Println(s.name)
		if err := operators.WriteTable(os.Stdout, rows); err != nil {
			return err
		}
		fmt.Println()
	}
	return nil
}

func runAll(ctx context.Context, config *rest.Config, s side, patience time.Duration) ([]operators.Row, error) {
	var rows []operators.Row
	for _, operator := range operators.List() {
		row, err := runOne(ctx, config, operator, s.drain, patience)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", operator.Name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s took %.1f s\n", s.name, operator.Name, row.Took.Seconds())
		rows = append(rows, row)
	}
	return rows, nil
}

func runOne(
	ctx context.Context, config *rest.Config, o operators.Operator, drain operators.Drain, patience time.Duration,
) (operators.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return o.Run(ctx, config, drain)
}

func drainByBelay(ctx context.Context, config *rest.Config, node string) error {
	_, err := kube.DrainNode(ctx, config, node, kube.DrainOptions{})
	return err
}

func drainByKubectl(ctx context.Context, config *rest.Config, node string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return kubectldrain.Drain(ctx, client, node, kubectldrain.Retry)
}
