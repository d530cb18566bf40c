// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "strings"

// A Revision names something that nodes are brought to. It stands in [Orders] and [Report] in the form that String gives it.
type Revision struct {
	// Name has no "@".
	Name string `json:"name,omitempty"`
	// Digest pins the content. Empty means whatever has the name.
	Digest string `json:"digest,omitempty"`
}

// ParseRevision reads what [Revision.String] has written. A text without "@" is a name alone.
func ParseRevision(s string) Revision {
	name, digest, _ := strings.Cut(s, "@")
	return Revision{Name: name, Digest: digest}
}

// String is "name@digest", or the name alone if nothing is pinned.
func (r Revision) String() string {
	if r.Digest == "" {
		return r.Name
	}
	return r.Name + "@" + r.Digest
}

// Is reports whether a node that runs so runs this revision: the name is the same, and the digest if one is pinned. Nothing is the empty
// revision, not even itself: what is not known is not the same.
func (r Revision) Is(runs Revision) bool {
	return r.Name != "" && r.Name == runs.Name && (r.Digest == "" || r.Digest == runs.Digest)
}
