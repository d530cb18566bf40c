// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/belayproject/belay/lkg"
)

// MaxObject is the most bytes that an object may have, as JSON. The API server takes less than 1.5 MiB.
const MaxObject = 4 << 20

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

// ParseObject reads a ConfigMap that was serialised as JSON. Fields that this package doesn't know are kept in Raw and otherwise
// ignored, as a newer server may send them. Known fields are compared exactly: one that differs in case only is refused, because
// which of the two would count depends on the reader. The error names a field, never a value.
func ParseObject(raw []byte) (Object, error) {
	if len(raw) > MaxObject {
		return Object{}, fmt.Errorf("object has %d bytes, at most %d are taken", len(raw), MaxObject)
	}
	o := Object{Raw: raw}
	var kind string
	var meta json.RawMessage
	err := members(raw, "", map[string]any{"kind": &kind, "metadata": &meta, "immutable": &o.Immutable, "data": &o.Data})
	if err != nil {
		return Object{}, err
	}
	if kind != "" && kind != "ConfigMap" {
		return Object{}, fmt.Errorf("kind is %q, must be %q", clipped(kind), "ConfigMap")
	}
	err = members(meta, "metadata.", map[string]any{
		"namespace": &o.Namespace, "name": &o.Name, "uid": &o.UID, "resourceVersion": &o.ResourceVersion,
	})
	if err != nil {
		return Object{}, err
	}
	return o, nil
}

// members decodes the named members of a JSON object. Names are compared exactly, once each.
func members(raw []byte, path string, into map[string]any) error {
	where := strings.TrimSuffix("object."+path, ".")
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("%s must be a JSON object", where)
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return fmt.Errorf("%s is not valid JSON after %d bytes", where, dec.InputOffset())
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return fmt.Errorf("%s is not valid JSON after %d bytes", where, dec.InputOffset())
		}
		if err := member(name, path, value, into, seen); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("%s is not valid JSON after %d bytes", where, dec.InputOffset())
	}
	if dec.More() {
		return fmt.Errorf("%s has more behind its end, after %d bytes", where, dec.InputOffset())
	}
	return nil
}

// member decodes one member if it is wanted.
func member(name, path string, value json.RawMessage, into map[string]any, seen map[string]bool) error {
	for want, v := range into {
		switch {
		case name == want && seen[want]:
			return fmt.Errorf("field %q stands twice", path+want)
		case name == want:
			seen[want] = true
			if err := json.Unmarshal(value, v); err != nil {
				return fmt.Errorf("field %q must be a %s", path+want, shape(v))
			}
		case strings.EqualFold(name, want):
			return fmt.Errorf("field %q differs from %q in case only", path+clipped(name), path+want)
		}
	}
	return nil
}

// shape names the JSON type that decodes into v.
func shape(v any) string {
	switch v.(type) {
	case *bool:
		return "boolean"
	case *map[string]string:
		return "map of strings"
	default:
		return "string"
	}
}

// clipped bounds a name that an input chose before it goes into an error.
func clipped(s string) string {
	if len(s) > 64 {
		return s[:61] + "..."
	}
	return s
}

// Digest identifies the entries: "sha256:" and 64 lower-case hex digits. It is the SHA-256 of, for each key in byte order, the
// key's length in decimal, a space, the key, a space, the value's length in decimal, a space, the value, and a line feed.
// Metadata doesn't count, so the digest of a config can be written down before its object exists.
func (o Object) Digest() string { return DigestOf(o.Data) }

// DigestOf is [Object.Digest] for entries that are no object yet.
func DigestOf(data map[string]string) string {
	h := sha256.New()
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(data)) {
		b = strconv.AppendInt(b[:0], int64(len(key)), 10)
		b = append(append(append(b, ' '), key...), ' ')
		b = strconv.AppendInt(b, int64(len(data[key])), 10)
		b = append(append(append(b, ' '), data[key]...), '\n')
		h.Write(b)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// HashedName is a name for an immutable object that holds data: base, a dash and the first 10 hex digits of the digest. New
// content gets a new name, so that no reader can be served an older object of the same name. base is cut so that the name fits
// the 253 bytes that an object name may have.
func HashedName(base string, data map[string]string) string {
	suffix := "-" + strings.TrimPrefix(DigestOf(data), "sha256:")[:10]
	return base[:min(len(base), 253-len(suffix))] + suffix
}

// Ref names the entry key of this version of the object.
func (o Object) Ref(key string) lkg.Ref {
	return lkg.Ref{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Key: key, Digest: o.Digest()}
}
