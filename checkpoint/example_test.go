// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/belayproject/belay/checkpoint"
)

func Example() {
	base, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(base)
	ctx := context.Background()

	store, err := checkpoint.Open(filepath.Join(base, "state"), checkpoint.Options{
		OnDamage: func(d checkpoint.Damage) { log.Printf("damaged record: %v", &d) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	if _, err := store.Get(ctx, "current"); errors.Is(err, fs.ErrNotExist) {
		fmt.Println("first boot: no config is recorded")
	}
	// Once Put returned nil, no power cut takes the record back: now it may be acted on.
	if err := store.Put(ctx, "current", []byte(`{"name":"v1"}`)); err != nil {
		log.Fatal(err)
	}
	if err := store.Put(ctx, "current", []byte(`{"name":"v2"}`)); err != nil {
		log.Fatal(err)
	}
	rec, err := store.Read(ctx, "current")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("generation %d: %s\n", rec.Generation, rec.Payload)

	// Output:
	// first boot: no config is recorded
	// generation 2: {"name":"v2"}
}
