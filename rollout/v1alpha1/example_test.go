// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/rollout"
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

// A Rollout is decided on, and says how far it is.
func ExampleStatusOf() {
	os := &v1alpha1.Revision{Spec: v1alpha1.RevisionSpec{Digest: v1alpha1.OpaqueDigest("os:1.45"), Opaque: "os:1.45"}}
	os.Name = "os-1.45"
	r := &v1alpha1.Rollout{}
	err := yaml.UnmarshalStrict([]byte(`
metadata: {name: os, uid: 0c7b}
spec:
  revision: {name: os-1.45, digest: "`+os.Spec.Digest+`"}
  selector: {matchLabels: {pool: web}}
  stages:
  - {name: canary, size: 1, soak: 2h}
  - {name: all}
  caps: [{scope: Total, max: "10%"}]
  windows: [{days: [Saturday], open: "22:00", close: "04:00", zone: Europe/Berlin}]
`), r)
	if err != nil {
		fmt.Println(err)
	}
	revisions := func(name string) (*v1alpha1.Revision, bool) { return os, name == os.Name }

	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) // a Monday
	r = v1alpha1.HeedRollback(r, revisions)
	policy, err := v1alpha1.PolicyOf(r, revisions)
	if err != nil {
		fmt.Println(err)
	}
	remembered, err := v1alpha1.ProgressOf(r.Status)
	if err != nil {
		fmt.Println(err)
	}
	node := rollout.Node{Name: "web-1", UID: "5d1f", Labels: map[string]string{"pool": "web"}, Health: rollout.Verdict{Answer: rollout.Allow}}
	decisions, err := rollout.Plan(rollout.Snapshot{Nodes: []rollout.Node{node}, Progress: remembered}, policy, now)
	if err != nil {
		fmt.Println(err)
	}
	status, _ := v1alpha1.StatusOf(r, v1alpha1.Observed{Policy: policy, Decisions: decisions}, now)
	fmt.Println(status.Phase, status.Done, status.Stage.Name)
	for _, n := range status.Nodes {
		fmt.Println(n.Node, n.Reason, n.Message)
	}
	// Output:
	// Running 0/1 canary
	// web-1 NoAgent the agent has not said yet what it has done
}
