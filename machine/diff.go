// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

// A Difference is one field in which two machines differ.
type Difference struct {
	// Path is as in YAML, like "spec.versions.kubelet".
	Path string
	// A and B are the values, in words where they are long; empty where there is none.
	A, B string
}
