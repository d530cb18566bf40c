// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/file"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/lkg"
)

// Config is the file named config in the directory of wanted configs.
type Config struct {
	Workers int `json:"workers"`
}

// rules implement configsync.Validator.
type rules struct{}

func (rules) Validate(_ context.Context, c Config) error {
	if c.Workers < 1 {
		return errors.New("workers must be at least 1")
	}
	return nil
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: config STATE-DIRECTORY WANTED-DIRECTORY")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1], os.Args[2], func(c Config) { fmt.Println(c.Workers, "workers") })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(restart.Code(err))
}

// run is one life of the process. use starts the work with the config.
func run(ctx context.Context, state, wanted string, use func(Config)) error {
	store, err := checkpoint.Open(state, checkpoint.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	source := &file.Source{Dir: wanted}
	s, err := configsync.New(ctx, configsync.Options[Config]{
		Version: "v1.0.0", Key: "config", Codec: configsync.YAML[Config](configsync.YAMLOptions{}),
		Validators: []configsync.Validator[Config]{rules{}}, Default: func() Config { return Config{Workers: 1} },
		Store: store, Source: source, Fetcher: source, Restarter: restart.Exit{Code: 75},
	})
	if err != nil {
		return err
	}
	active, err := s.Bootstrap(ctx, lkg.Exit{}) // reads the disk alone: the last known good config where the current one crashes
	if err != nil {
		return err
	}
	fmt.Println(active.Verdict.Condition.Message)
	use(active.Config)
	err = s.Run(ctx) // returns when another config is to be used
	if ctx.Err() != nil {
		err = s.Stopping(context.WithoutCancel(ctx)) // a planned stop: the next start counts against no config
	}
	return err
}
