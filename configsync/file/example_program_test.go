// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/file"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/lkg"
)

// A workers is the config of this program.
type workers struct {
	Workers int `json:"workers"`
}

// positive judges it, beyond what its type says.
type positive struct{}

func (positive) Validate(_ context.Context, c workers) error {
	if c.Workers < 1 {
		return fmt.Errorf("workers: %d must be at least 1", c.Workers)
	}
	return nil
}

// run is one life of the program. It returns when another config is wanted, and has to be started again then.
func run(ctx context.Context, state, wanted string, work func(workers)) error {
	store, err := checkpoint.Open(state, checkpoint.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	source := &file.Source{Dir: wanted} // or kube.NewNodeConfigSource and kube.NewConfigMapFetcher
	s, err := configsync.New(ctx, configsync.Options[workers]{
		Version: "v1.0.0", Key: "config", Codec: configsync.YAML[workers](configsync.YAMLOptions{}),
		Validators: []configsync.Validator[workers]{positive{}}, Default: func() workers { return workers{Workers: 1} },
		Store: store, Source: source, Fetcher: source, Restarter: restart.Exit{Code: 75},
	})
	if err != nil {
		return err
	}
	active, err := s.Bootstrap(ctx, lkg.Exit{})
	if err != nil {
		return err
	}
	fmt.Println(active.Verdict.Condition.Message)
	work(active.Config)
	err = s.Run(ctx) // ends when another config is to be taken up
	if ctx.Err() != nil {
		err = s.Stopping(context.WithoutCancel(ctx)) // stopped on purpose: the next start is no crash
	}
	return err
}

// A program that takes its config from a directory, keeps it on its disk, and goes on without a bad one. Its main ends ctx on SIGTERM, and exits with
// restart.Code of the error, so that whatever started it starts it again.
func Example_program() {
	base, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(base) }()
	state, wanted := filepath.Join(base, "state"), filepath.Join(base, "wanted")
	write := func(text string) error {
		return errors.Join(os.MkdirAll(wanted, 0o700), os.WriteFile(filepath.Join(wanted, "config"), []byte(text), 0o600))
	}
	if err := write("workers: 8\n"); err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 2 {
		err := run(ctx, state, wanted, func(c workers) {
			fmt.Println(c.Workers, "workers")
			if c.Workers == 8 {
				cancel() // enough for an example
			}
		})
		fmt.Println("exit code", restart.Code(err))
	}
	// Output:
	// using current (default)
	// 1 workers
	// exit code 75
	// using current (UID: file-e057ef59b9465c7c238ed064a80c1295)
	// 8 workers
	// exit code 0
}
