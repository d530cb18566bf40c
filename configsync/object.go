// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/belayproject/belay/lkg"
)

// The limits of an object.
const (
	// MaxObject is the most bytes that an object may have, as JSON. The API server takes less than 1.5 MiB.
	MaxObject = 4 << 20
	// MaxData is the most bytes that the keys and values of an object may have together. The API server allows as many in
	// the values alone; a ConfigMap so close to that bound is refused here, by a few bytes of keys.
	MaxData = 1 << 20
	// MaxKeys is the most entries that an object may have.
	MaxKeys = 1000
)

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

// ParseObject reads a ConfigMap that was serialised as JSON. Fields that this package doesn't know are kept in Raw
// and otherwise ignored, as a newer server may send them. Known fields are compared exactly: one that differs in case
// only, or stands twice, is refused, because which of the two would count depends on the reader; so is an entry of
// data that stands twice. Names and keys that no server would accept are refused, so that none of them is a path. The
// error names a field, never a value of data.
//
// Whether the object is the one that was asked for, and has a UID, is for [CheckObject]. raw is kept and must not be
// changed.
func ParseObject(raw []byte) (Object, error) {
	switch {
	case len(raw) > MaxObject:
		return Object{}, fmt.Errorf("object has %d bytes, at most %d are taken", len(raw), MaxObject)
	case !utf8.Valid(raw):
		return Object{}, errors.New("object must be UTF-8")
	}
	o := Object{Raw: raw}
	var kind, version string
	var meta json.RawMessage
	err := members(raw, "", map[string]any{
		"kind": &kind, "apiVersion": &version, "metadata": &meta, "immutable": &o.Immutable, "data": &o.Data,
	})
	switch {
	case err != nil:
		return Object{}, err
	case kind != "" && kind != "ConfigMap":
		return Object{}, fmt.Errorf("kind is %q, must be %q", clipped(kind), "ConfigMap")
	case version != "" && version != "v1":
		return Object{}, fmt.Errorf("apiVersion is %q, must be %q", clipped(version), "v1")
	}
	err = members(meta, "metadata.", map[string]any{
		"namespace": &o.Namespace, "name": &o.Name, "uid": &o.UID, "resourceVersion": &o.ResourceVersion,
	})
	if err != nil {
		return Object{}, err
	}
	if err := o.check(); err != nil {
		return Object{}, err
	}
	return o, nil
}

// check refuses names that no server would accept, where there are any, and too much data.
func (o Object) check() error {
	switch {
	case o.Namespace != "" && !isNamespace(o.Namespace):
		return fmt.Errorf("field %q: %s", "metadata.namespace", namespaceProblem(o.Namespace))
	case o.Name != "" && !isObjectName(o.Name):
		return fmt.Errorf("field %q: %s", "metadata.name", nameProblem(o.Name))
	case o.UID != "" && validateUID(o.UID) != nil:
		return fmt.Errorf("field %q: %w", "metadata.uid", validateUID(o.UID))
	}
	size := 0
	for key, value := range o.Data {
		if !isKey(key) {
			return fmt.Errorf("field %q: key %s", "data", keyNameProblem(key))
		}
		size += len(key) + len(value)
	}
	if size > MaxData {
		return fmt.Errorf("field %q has %d bytes of keys and values, at most %d are taken", "data", size, MaxData)
	}
	return nil
}

// members decodes the wanted members of a JSON object. Names are compared exactly, once each.
func members(raw []byte, path string, into map[string]any) error {
	seen := map[string]bool{}
	return eachMember(raw, strings.TrimSuffix("object."+path, "."), func(name string, value json.RawMessage) error {
		for want, v := range into {
			switch {
			case name == want && seen[want]:
				return fmt.Errorf("field %q stands twice", path+want)
			case name == want:
				seen[want] = true
				return member(value, path+want, v)
			case strings.EqualFold(name, want):
				return fmt.Errorf("field %q differs from %q in case only", path+clipped(name), path+want)
			}
		}
		return nil
	})
}

// eachMember calls f for each member of a JSON object, in order. Nothing may stand behind the object.
func eachMember(raw []byte, where string, f func(name string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("%s must be a JSON object", where)
	}
	invalid := func() error { return fmt.Errorf("%s is not valid JSON after %d bytes", where, dec.InputOffset()) }
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return invalid()
		}
		if err := f(name, value); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return invalid()
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s has more behind its end, after %d bytes", where, dec.InputOffset())
	}
	return nil
}

// member decodes the value of one member. The decoder's own error would show the value.
func member(value json.RawMessage, path string, into any) error {
	shape := "string"
	switch into := into.(type) {
	case *map[string]string:
		return entriesOf(value, path, into)
	case *bool:
		shape = "boolean"
	}
	if json.Unmarshal(value, into) != nil {
		return fmt.Errorf("field %q must be a %s", path, shape)
	}
	return nil
}

// entriesOf decodes a map of strings. Keys that differ in case are different keys; the same key twice is an error.
func entriesOf(value json.RawMessage, path string, into *map[string]string) error {
	if string(value) == "null" {
		return nil
	}
	data := map[string]string{}
	*into = data
	return eachMember(value, path, func(key string, value json.RawMessage) error {
		if _, ok := data[key]; ok {
			return fmt.Errorf("field %q: key %q stands twice", path, clipped(key))
		}
		if len(data) == MaxKeys {
			return fmt.Errorf("field %q has more than %d keys", path, MaxKeys)
		}
		var text string
		if value[0] != '"' || json.Unmarshal(value, &text) != nil {
			return fmt.Errorf("field %q: the value of %q must be a string", path, clipped(key))
		}
		data[key] = text
		return nil
	})
}

// clipped bounds a name that an input chose before it goes into an error.
func clipped(s string) string {
	if len(s) > 64 {
		return s[:61] + "..."
	}
	return s
}

// Digest identifies the entries: "sha256:" and 64 lower-case hex digits. It is the SHA-256 of, for each key in byte
// order, the key's length in decimal, a space, the key, a space, the value's length in decimal, a space, the value,
// and a line feed. Metadata doesn't count, so the digest of a config can be written down before its object exists.
// Anyone can recompute it; for {"b": "", "a": "x"} it is
//
//	printf '1 a 1 x\n1 b 0 \n' | sha256sum
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

// hashedName is a name for an immutable object that holds data: base, a dash and the first 10 hex digits of the
// digest. New content gets a new name, so that no reader can be served an older object of the same name. base is cut
// so that the name fits the 253 bytes that an object name may have.
func hashedName(base string, data map[string]string) string {
	suffix := "-" + strings.TrimPrefix(DigestOf(data), "sha256:")[:10]
	if most := 253 - len(suffix); len(base) > most {
		base = strings.TrimRight(base[:most], "-.")
	}
	return base + suffix
}

// Ref names the entry key of this version of the object.
func (o Object) Ref(key string) lkg.Ref {
	return lkg.Ref{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Key: key, Digest: o.Digest()}
}

// The directories of the Store that hold payloads: one stream an object UID in checkpoints, and one a version in good.
// The last known good config never shares a file with the assigned one, so no bad sector takes both.
const (
	dirCheckpoints = "checkpoints"
	dirGood        = "good"
)

func checkpointStream(uid string) string { return dirCheckpoints + "/" + uid }

// goodStream names one version: a mutable object keeps its UID over edits, and the good version must outlive them.
func goodStream(r lkg.Ref) string {
	hex := strings.TrimPrefix(r.Digest, "sha256:")
	return dirGood + "/" + r.UID + "." + hex[:min(12, len(hex))]
}

// An objectStore keeps the objects of configs in a Store: a checkpoint of each assigned one, and a copy of each good
// one. What it loads is verified by UID and digest.
type objectStore struct{ store Store }

// keepCheckpoint stores an object before anything names it as assigned.
func (s objectStore) keepCheckpoint(ctx context.Context, obj Object) error {
	return s.store.Put(ctx, checkpointStream(obj.UID), obj.Raw)
}

// load returns the stored object that r names, from its checkpoint or the good copy, verified by UID and digest.
func (s objectStore) load(ctx context.Context, r lkg.Ref) (Object, error) {
	if err := validateUID(r.UID); err != nil {
		return Object{}, fmt.Errorf("loading the checkpoint: %w", err)
	}
	var errs []error
	for _, stream := range []string{checkpointStream(r.UID), goodStream(r)} {
		obj, err := s.loadStream(ctx, stream, r)
		if err == nil {
			return obj, nil
		}
		errs = append(errs, err)
	}
	return Object{}, errors.Join(errs...)
}

func (s objectStore) loadStream(ctx context.Context, stream string, r lkg.Ref) (Object, error) {
	raw, err := s.store.Get(ctx, stream)
	if err != nil {
		return Object{}, fmt.Errorf("loading %q: %w", stream, err)
	}
	obj, err := ParseObject(raw)
	if err != nil {
		return Object{}, fmt.Errorf("loading %q: %w", stream, err)
	}
	if got := obj.Digest(); obj.UID != r.UID || got != r.Digest {
		return Object{}, fmt.Errorf("loading %q: %w: want UID %q with digest %s, found UID %q with digest %s",
			stream, ErrMismatch, r.UID, r.Digest, obj.UID, got)
	}
	return obj, nil
}

// keepGood stores the good config's own copy before anything names it as good.
func (s objectStore) keepGood(ctx context.Context, r lkg.Ref) error {
	if r.IsLocal() {
		return nil
	}
	obj, err := s.load(ctx, r)
	if err != nil {
		return err
	}
	return s.store.Put(ctx, goodStream(r), obj.Raw)
}

// pruneUnnamed deletes the payloads that the records in st do not name. It deletes nothing unless everything that is
// named can be loaded, so that trouble never shrinks the choice.
func (s objectStore) pruneUnnamed(ctx context.Context, st *lkg.State) error {
	keep := map[string]bool{}
	for _, r := range []lkg.Ref{st.Current.Ref, st.LastKnownGood, st.Previous} {
		if r.IsLocal() {
			continue
		}
		keep[checkpointStream(r.UID)], keep[goodStream(r)] = true, true
	}
	extra, err := s.listUnnamed(ctx, keep)
	if err != nil || len(extra) == 0 {
		return err
	}
	for _, r := range []lkg.Ref{st.Current.Ref, st.LastKnownGood, st.Previous} {
		if r.IsLocal() || st.BadEntry(r) != nil {
			continue
		}
		if _, err := s.load(ctx, r); err != nil {
			return fmt.Errorf("pruning: %w", err)
		}
	}
	for _, stream := range extra {
		if err := s.store.Delete(ctx, stream); err != nil {
			return fmt.Errorf("pruning %q: %w", stream, err)
		}
	}
	return nil
}

// listUnnamed lists the stored payloads that are not in keep.
func (s objectStore) listUnnamed(ctx context.Context, keep map[string]bool) ([]string, error) {
	var extra []string
	for _, dir := range []string{dirCheckpoints, dirGood} {
		streams, err := s.store.List(ctx, dir)
		if err != nil {
			return nil, fmt.Errorf("pruning: listing %q: %w", dir, err)
		}
		for _, stream := range streams {
			if !keep[stream] {
				extra = append(extra, stream)
			}
		}
	}
	return extra, nil
}
