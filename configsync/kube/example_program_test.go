// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/lkg"
)

// agentConfig is the config of this program: the key "agent" of a ConfigMap has it as YAML.
type agentConfig struct {
	Workers int `json:"workers"`
}

// Validate implements configsync.Validator.
func (agentConfig) Validate(_ context.Context, c agentConfig) error {
	if c.Workers < 1 {
		return errors.New("workers must be at least 1")
	}
	return nil
}

// runFromAPIServer is one life of the program on one node. Whatever started it starts it again when it returns.
func runFromAPIServer(ctx context.Context, config *rest.Config, node, state string, work func(agentConfig)) error {
	client, err := kube.NewClient(config, nil)
	if err != nil {
		return err
	}
	source, err1 := kube.NewNodeConfigSource(client, node, kube.Options{})
	fetcher, err2 := kube.NewConfigMapFetcher(client, kube.Options{})
	store, err3 := checkpoint.Open(state, checkpoint.Options{})
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	defer store.Close()
	s, err := configsync.New(ctx, configsync.Options[agentConfig]{
		Version: "v1.0.0", Key: "agent", Codec: configsync.YAML[agentConfig](configsync.YAMLOptions{}),
		Validators: []configsync.Validator[agentConfig]{agentConfig{}}, Default: func() agentConfig { return agentConfig{Workers: 1} },
		Store: store, Source: source, Fetcher: fetcher, Reporter: source.StatusReporter(), Restarter: restart.Exit{Code: 75},
	})
	if err != nil {
		return err
	}
	active, err := s.Bootstrap(ctx, lkg.Exit{}) // from the disk alone
	if err != nil {
		return err
	}
	work(active.Config)
	err = s.Run(ctx) // ends when another config is to be taken up
	if ctx.Err() != nil {
		err = s.Stopping(context.WithoutCancel(ctx)) // stopped on purpose: the next start is no crash
	}
	return err
}

// The main of the program. NODE_NAME comes from the downward API, or is the name of the host. An administrator has called
// kube.Install before.
func Example_program() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := rest.InClusterConfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	err = runFromAPIServer(ctx, config, os.Getenv("NODE_NAME"), "/var/lib/acme-agent", func(c agentConfig) {
		fmt.Println(c.Workers, "workers") // begin the work of the program here
	})
	fmt.Println("exit code", restart.Code(err)) // os.Exit in a main
}
