// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

// An Object is a config object as a whole, all keys of one version.
type Object struct {
	// Namespace, Name, UID and ResourceVersion are the object's own.
	Namespace, Name, UID, ResourceVersion string
	// Immutable says that the server refuses edits of Data.
	Immutable bool
	// Data holds the entries.
	Data map[string]string
	// Raw is the whole object as one JSON document, metadata included: what is checkpointed, byte for byte.
	Raw []byte
}
