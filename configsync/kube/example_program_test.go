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

// A workFunc is the work of this program. It ends with its context, for example when another config is to be taken up.
type workFunc = func(ctx context.Context, active configsync.Active[agentConfig]) error

// runFromAPIServer is one life of the program on one node. Its service manager starts it again when it returns.
func runFromAPIServer(ctx context.Context, config *rest.Config, node, state string, work workFunc) error {
	store, err := checkpoint.Open(state, checkpoint.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	return kube.RunAgent(ctx, config, kube.AgentOptions[agentConfig]{
		Node: node, Work: work,
		Syncer: configsync.Options[agentConfig]{
			Version: "v1.0.0", Key: "agent", Codec: configsync.YAML[agentConfig](configsync.YAMLOptions{}),
			Validators: []configsync.Validator[agentConfig]{agentConfig{}},
			Default:    func() agentConfig { return agentConfig{Workers: 1} },
			Store:      store, Restarter: restart.Exit{Code: 75},
		},
	})
}

// The main of the program. NODE_NAME comes from the downward API, or is the name of the host. An administrator has
// called kube.Install before.
func Example_program() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := rest.InClusterConfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	work := func(ctx context.Context, active configsync.Active[agentConfig]) error {
		fmt.Println(active.Config.Workers, "workers")
		<-ctx.Done()
		return nil
	}
	err = runFromAPIServer(ctx, config, os.Getenv("NODE_NAME"), "/var/lib/acme-agent", work)
	fmt.Println("exit code", restart.Code(err)) // os.Exit in a main
}
