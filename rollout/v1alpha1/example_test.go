// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A revision for a hook that updates the operating system: an image, and what it does to a node.
func ExampleRevision() {
	image := "registry.example.com/os:1.45.0"
	r := v1alpha1.Revision{Spec: v1alpha1.RevisionSpec{
		Digest: v1alpha1.OpaqueDigest(image), Class: "Intrusive", Opaque: image,
	}}
	r.Name = "os-1.45.0"
	out, err := json.MarshalIndent(r.Spec, "", "  ")
	fmt.Println(string(out), err, r.Spec.Check())
	// Output:
	// {
	//   "digest": "sha256:5f03390dbab910df316d719c3a7f423e5156d29bbb1521c90da049b0b7d998ee",
	//   "class": "Intrusive",
	//   "opaque": "registry.example.com/os:1.45.0"
	// } <nil> <nil>
}
