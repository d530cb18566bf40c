// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/belayproject/belay/checkpoint"
)

// A second process looks into a store that is in use.
func ExampleOpenReader() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Put(ctx, "checkpoints/uid-1", []byte("object")); err != nil {
		log.Fatal(err)
	}

	reader, err := checkpoint.OpenReader(dir, checkpoint.Options{})
	if err != nil {
		log.Fatal(err)
	}
	names, err := reader.List(ctx, "checkpoints")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(names)

	// Output:
	// [checkpoints/uid-1]
}
