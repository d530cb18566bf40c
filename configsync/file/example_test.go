// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/file"
	"github.com/belayproject/belay/lkg"
)

type config struct {
	Workers int `json:"workers"`
}

// A node that has nothing but the config it was provisioned with.
func ExampleInit() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(path, []byte("workers: 4\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	s, err := configsync.New(ctx, configsync.Options[config]{
		Version: "v1", Key: "agent", BootID: "example",
		Codec: configsync.YAML[config](configsync.YAMLOptions{}),
		Init:  func(context.Context) (configsync.Object, error) { return file.Init(path, "agent") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	active, err := s.Bootstrap(ctx, lkg.Exit{})
	fmt.Println(active.Config.Workers, active.Ref.IsLocal(), err)
	// Output: 4 true <nil>
}

// A directory as the source of the wanted config: each file is an entry, and other content is another config.
func ExampleSource() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "agent"), []byte("workers: 8\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	source := &file.Source{Dir: dir}
	spec, err := source.Desired(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	object, err := source.Fetch(ctx, *spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg, _, err := configsync.YAML[config](configsync.YAMLOptions{}).Decode("agent", object)
	fmt.Println(cfg.Workers, spec.Digest == object.Digest(), err)
	// Output: 8 true <nil>
}
