// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fields_test

import (
	"fmt"

	"github.com/belayproject/belay/configsync/fields"
)

func Example() {
	policy, err := fields.Parse([]byte(`
apiVersion: belay.dev/v1alpha1
kind: FieldPolicy
default: Restart
rules:
- {path: clusterDomain, action: Forbid, why: pods keep the old one}
- {path: cpuManagerPolicy, action: Drain, pools: [canary]}
- {path: evictionHard.*, action: Live}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	before := []byte("maxPods: 110\nevictionHard: {memory.available: 100Mi}\nclusterDomain: cluster.local\n")
	for _, after := range []string{
		"maxPods: 110\nevictionHard: {memory.available: 200Mi}\nclusterDomain: cluster.local\n",
		"maxPods: 110\nevictionHard: {memory.available: 200Mi}\nclusterDomain: cluster.local\ncpuManagerPolicy: static\n",
		"maxPods: 250\nevictionHard: {memory.available: 200Mi}\nclusterDomain: example.org\n",
	} {
		d, err := policy.Decide(before, []byte(after), "canary")
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, c := range d.Changes {
			fmt.Println(c.Path, c.Action)
		}
		fmt.Printf("=> %s, class %q, %v\n", d.Action, d.Class(), d.Err())
	}
	// Output:
	// evictionHard["memory.available"] Live
	// => Live, class "NonIntrusive", <nil>
	// cpuManagerPolicy Drain
	// evictionHard["memory.available"] Live
	// => Drain, class "Intrusive", <nil>
	// clusterDomain Forbid
	// evictionHard["memory.available"] Live
	// maxPods Restart
	// => Forbid, class "", field policy: field clusterDomain must not be changed: pods keep the old one
}
