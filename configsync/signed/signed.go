// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package signed

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belayproject/belay/configsync"
)

// Entry is the entry of an object that holds its signatures.
const Entry = "signatures"

// The limits of [Entry].
const (
	// maxSignatures is the most lines with a signature.
	maxSignatures = 16
	// maxEntry is the most bytes.
	maxEntry = 16 << 10
)

// purpose keeps a signature from being taken for one of something else.
const purpose = "belay.dev/config/v1 "

// Message is what is signed for an object with these entries: "belay.dev/config/v1 " and the [configsync.DigestOf] of all but [Entry].
func Message(data map[string]string) []byte {
	rest := maps.Clone(data)
	delete(rest, Entry)
	return []byte(purpose + configsync.DigestOf(rest))
}

// Sign returns the line for [Entry]. id names the key as the nodes know it.
func Sign(id string, key ed25519.PrivateKey, data map[string]string) (string, error) {
	switch {
	case !isID(id):
		return "", fmt.Errorf("signing: key ID %q %s", clipped(id), wantID)
	case len(key) != ed25519.PrivateKeySize:
		return "", fmt.Errorf("signing: the private key has %d bytes, must have %d", len(key), ed25519.PrivateKeySize)
	}
	return id + " " + base64.StdEncoding.EncodeToString(ed25519.Sign(key, Message(data))), nil
}

const wantID = "must be 1 to 64 of [-._a-z0-9], beginning with a letter or digit"

func isID(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && (c == '-' || c == '.' || c == '_')) {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// clipped bounds what an object chose before it goes into an error.
func clipped(s string) string {
	if len(s) > 64 {
		return s[:61] + "..."
	}
	return s
}

// An UnsignedError says why no signature of an object is good. It holds no data of it.
type UnsignedError struct {
	// Named are the IDs of the keys that the object names, in order.
	Named []string
	// Problem says what is wrong.
	Problem string
}

// Error names the keys.
func (e *UnsignedError) Error() string {
	if len(e.Named) == 0 {
		return "signature: " + e.Problem
	}
	quoted := make([]string, len(e.Named))
	for i, id := range e.Named {
		quoted[i] = fmt.Sprintf("%q", id)
	}
	return "signature: " + e.Problem + "; it names " + strings.Join(quoted, ", ")
}

// A signature is one line of the entry.
type signature struct {
	id  string
	sum []byte
}

// signatures reads the entry.
func signatures(text string) ([]signature, error) {
	if len(text) > maxEntry {
		return nil, &UnsignedError{Problem: fmt.Sprintf("entry %q has %d bytes, at most %d are taken", Entry, len(text), maxEntry)}
	}
	var all []signature
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, encoded, _ := strings.Cut(line, " ")
		sum, err := base64.StdEncoding.Strict().DecodeString(encoded)
		switch {
		case len(all) == maxSignatures:
			return nil, &UnsignedError{Problem: fmt.Sprintf("entry %q has more than %d signatures", Entry, maxSignatures)}
		case !isID(id) || err != nil || len(sum) != ed25519.SignatureSize:
			return nil, &UnsignedError{Problem: fmt.Sprintf("entry %q, line %d: must be the ID of a key, a space and an Ed25519 signature in base64", Entry, n)}
		}
		all = append(all, signature{id, sum})
	}
	return all, nil
}

// Keys are the public keys that a node trusts, by their IDs. The zero Keys trust nobody.
type Keys struct {
	byID map[string]ed25519.PublicKey
}

// NewKeys trusts the given keys. The error names an ID or a key that is none.
func NewKeys(byID map[string]ed25519.PublicKey) (Keys, error) {
	for id, key := range byID {
		switch {
		case !isID(id):
			return Keys{}, fmt.Errorf("trusted keys: ID %q %s", clipped(id), wantID)
		case len(key) != ed25519.PublicKeySize:
			return Keys{}, fmt.Errorf("trusted keys: %q has %d bytes, must have %d", id, len(key), ed25519.PublicKeySize)
		}
	}
	return Keys{maps.Clone(byID)}, nil
}

// IDs are those of the keys, in order.
func (k Keys) IDs() []string { return slices.Sorted(maps.Keys(k.byID)) }

// Inspect implements configsync.Inspector: nil where one signature is good, else an [*UnsignedError].
func (k Keys) Inspect(_ context.Context, _ string, o configsync.Object) error {
	all, err := signatures(o.Data[Entry])
	if err != nil {
		return err
	}
	message := Message(o.Data)
	var named []string
	known := false
	for _, s := range all {
		key, ok := k.byID[s.id]
		if ok && ed25519.Verify(key, message, s.sum) {
			return nil
		}
		known = known || ok
		if !slices.Contains(named, s.id) {
			named = append(named, s.id)
		}
	}
	slices.Sort(named)
	return &UnsignedError{named, k.problem(len(all), known)}
}

// problem says why none of n signatures is good.
func (k Keys) problem(n int, known bool) string {
	switch {
	case len(k.byID) == 0:
		return "this node trusts no key"
	case n == 0:
		return fmt.Sprintf("entry %q holds none", Entry)
	case known:
		return "that by a key which this node trusts does not fit the content"
	}
	return "none is by a key that this node trusts"
}
