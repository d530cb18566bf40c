// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

// A Ref names one version of one config. The zero Ref is the local config: the init config of the node, or its
// built-in defaults.
//
// UID, Key and Digest are the identity. Namespace, Name and ResourceVersion are information for people.
type Ref struct {
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Key             string `json:"key,omitempty"`
	Digest          string `json:"digest,omitempty"`
}

// Same reports whether both refs name the same content: UID, Key and Digest are equal.
func (r Ref) Same(other Ref) bool {
	return r.UID == other.UID && r.Key == other.Key && r.Digest == other.Digest
}

// IsLocal reports whether r is the local config.
func (r Ref) IsLocal() bool { return r.Same(Ref{}) }
