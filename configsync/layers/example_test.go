// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package layers_test

import (
	"fmt"

	"github.com/belayproject/belay/configsync/layers"
)

func Example() {
	node := layers.Stack{
		Defaults: []byte("maxPods: 110\nclusterDNS: [10.0.0.10]\n"),
		Node:     []byte("systemReserved: {memory: 2Gi}\n"),
	}
	m, err := node.Merge([]byte("maxPods: 250\nclusterDNS: []\nsystemReserved: {cpu: 200m}\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(m.Doc))
	for _, o := range m.Origins {
		fmt.Println(o.Path, "is from", o.Layer)
	}
	// Output:
	// {"clusterDNS":[],"maxPods":250,"systemReserved":{"cpu":"200m","memory":"2Gi"}}
	// clusterDNS is from shared
	// maxPods is from shared
	// systemReserved.cpu is from shared
	// systemReserved.memory is from node
}
