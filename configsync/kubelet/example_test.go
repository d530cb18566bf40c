// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"context"
	"fmt"

	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/lkg"
)

// A kubelet that ends because its program is gone is no evidence against its config.
func ExampleWitness_AttributeExit() {
	w, err := kubelet.NewWitness(kubelet.Subject{Command: []string{"/absent/kubelet", "--config=/run/kubelet.conf"}})
	if err != nil {
		panic(err)
	}
	exit := w.AttributeExit(context.Background(), lkg.Exit{Kind: lkg.ExitCrash, Detail: "exit status 127"})
	fmt.Println(exit.Fault)
	fmt.Println(exit.Detail)
	// Output:
	// Environment
	// exit status 127; not the config: the program /absent/kubelet can't be looked at: no such file or directory
}
