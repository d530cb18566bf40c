// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/belayproject/belay/configsync/kubelet"
)

// A node goes back from a config with a static CPU manager: what the kubelet has written under it goes aside.
func ExampleStateFiles() {
	root, err := os.MkdirTemp("", "kubelet-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(root) }()
	state := filepath.Join(root, "cpu_manager_state")
	if err := os.WriteFile(state, []byte(`{"policyName":"static","defaultCpuSet":"0-3"}`), 0o600); err != nil {
		log.Fatal(err)
	}
	files := kubelet.StateFiles{RootDir: root}
	moved, err := files.Prepare(context.Background(), []byte("cpuManagerPolicy: none\n"))
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range moved {
		fmt.Println(m)
	}
	// Output:
	// cpu_manager_state to belay-aside/cpu_manager_state.1: it was written under "static", the kubelet is started with "none"
}
