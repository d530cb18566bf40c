// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Digest returns the identity of what is desired: the SHA-256 of its JSON encoding, in hex. Nil and empty lists and maps are the same, as are maps
// with the same entries; [Desired.Config] counts byte for byte.
func (d Desired) Digest() string {
	data, _ := json.Marshal(d) // strings, maps of strings and bytes can always be encoded
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
