// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/belayproject/belay/machine/file"
)

// A directory of manifests is a store of machines.
func Example() {
	dir, err := os.MkdirTemp("", "machines")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	manifest := "apiVersion: belay.dev/v1alpha1\nkind: Machine\nmetadata: {name: first}\nspec: {roles: [control-plane]}\n"
	if err := os.WriteFile(filepath.Join(dir, "first.yaml"), []byte(manifest), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	store, err := file.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	fmt.Println(store.Refresh())
	// Output: [first] <nil>
}
