// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/examples/internal/agent/drift"
)

// Somebody edits the file that a config was rendered to.
func Example() {
	dir, err := os.MkdirTemp("", "drift")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx, path := context.Background(), filepath.Join(dir, "kubelet.conf")
	w, err := drift.Open(ctx, drift.Options{
		Path: path, Policy: drift.Repair, Store: &configsynctest.Disk{}, // or a *checkpoint.Store
		Write: func(payload []byte) error { return os.WriteFile(path, payload, 0o600) }, // in earnest: atomic
		Tell: func(_ context.Context, f drift.Finding) error { // in earnest: history.Journal.Add
			fmt.Println("drifted:", f.Found)
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Render(ctx, []byte("maxPods: 110\n")))
	fmt.Println(os.Remove(path))
	fmt.Println(w.Look(ctx)) // Run does this at an interval
	raw, _ := os.ReadFile(path)
	fmt.Print(string(raw))
	// Output:
	// <nil>
	// <nil>
	// drifted: absent
	// <nil>
	// maxPods: 110
}
