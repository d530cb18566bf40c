// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/belayproject/belay/checkpoint"
)

// The config of a CNI plugin and its token change together, or not at all.
func ExampleFileSet() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	// Before the program that reads the files starts: what a power cut left half done is undone here.
	set, err := checkpoint.OpenFileSet(ctx, filepath.Join(dir, "journal"), checkpoint.Options{})
	if err != nil {
		log.Fatal(err)
	}
	conf := filepath.Join(dir, "net.d", "10-net.conflist")
	err = set.Apply(ctx, []checkpoint.File{
		{Path: conf, Mode: 0o644, Content: []byte(`{"name":"net"}`)},
		{Path: filepath.Join(dir, "token"), Content: []byte("secret")},
		{Path: filepath.Join(dir, "net.d", "05-old.conf"), Absent: true},
	})
	if err != nil {
		log.Fatal(err)
	}
	content, err := os.ReadFile(conf)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", content)

	// Output:
	// {"name":"net"}
}
