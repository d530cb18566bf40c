// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A source is a `current` or `last-known-good` record. What this version does not know of it is kept, so that a newer
// version finds its own fields again.
type source struct {
	ref        Ref
	refExtra   fields
	id         string
	at         time.Time
	bootID     string
	previous   Ref
	promotedAt time.Time
	extra      fields
}

// fields are the members of a JSON object that nobody took yet.
type fields map[string]json.RawMessage

var errNoRef = errors.New(`no "configMapRef" with a uid`)

// decodeSource reads a record. An empty payload is the local config.
func decodeSource(payload []byte) (source, error) {
	var s source
	if len(payload) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(payload, &s.extra); err != nil {
		return source{}, err
	}
	var ref, previous fields
	err := s.extra.takeAll(map[string]any{
		"configMapRef": &ref, "previous": &previous,
		"assignment": &s.id, "assignedAt": &s.at, "bootID": &s.bootID, "promotedAt": &s.promotedAt,
	})
	if err != nil {
		return source{}, err
	}
	if s.ref, err = ref.takeRef(); err != nil {
		return source{}, err
	}
	s.refExtra = ref
	if previous != nil {
		if s.previous, err = decodePrevious(previous); err != nil {
			return source{}, err
		}
	}
	if s.id == "" { // the bare document of the specification: the content stands for the assignment
		s.id = s.ref.UID + " " + s.ref.Key + " " + s.ref.Digest
	}
	return s, nil
}

func decodePrevious(f fields) (Ref, error) {
	var ref fields
	if err := f.take("configMapRef", &ref); err != nil {
		return Ref{}, err
	}
	return ref.takeRef()
}

// takeRef takes the known members of a reference.
func (f fields) takeRef() (Ref, error) {
	var r Ref
	err := f.takeAll(map[string]any{
		"namespace": &r.Namespace, "name": &r.Name, "uid": &r.UID,
		"resourceVersion": &r.ResourceVersion, "key": &r.Key, "digest": &r.Digest,
	})
	if err != nil {
		return Ref{}, err
	}
	if r.UID == "" {
		return Ref{}, errNoRef
	}
	return r, nil
}

func (f fields) takeAll(into map[string]any) error {
	for name, v := range into {
		if err := f.take(name, v); err != nil {
			return err
		}
	}
	return nil
}

// take decodes one member and removes it. Member names are compared exactly.
func (f fields) take(name string, into any) error {
	raw, ok := f[name]
	if !ok {
		return nil
	}
	delete(f, name)
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("member %q: %w", name, err)
	}
	return nil
}

// encode gives the payload: nothing for the local config.
func (s source) encode() ([]byte, error) {
	if s.ref.IsLocal() {
		return []byte{}, nil
	}
	ref, err := withExtra(s.ref, s.refExtra)
	if err != nil {
		return nil, err
	}
	doc := struct {
		ConfigMapRef json.RawMessage `json:"configMapRef"`
		Assignment   string          `json:"assignment,omitempty"`
		AssignedAt   time.Time       `json:"assignedAt,omitzero"`
		BootID       string          `json:"bootID,omitempty"`
		Previous     *previousRef    `json:"previous,omitempty"`
		PromotedAt   time.Time       `json:"promotedAt,omitzero"`
	}{ref, s.id, s.at, s.bootID, nil, s.promotedAt}
	if !s.previous.IsLocal() {
		doc.Previous = &previousRef{s.previous}
	}
	return withExtra(doc, s.extra)
}

type previousRef struct {
	ConfigMapRef Ref `json:"configMapRef"`
}

// withExtra encodes doc, which encodes as an object with at least one member, with the extra members behind its own.
func withExtra(doc any, extra fields) ([]byte, error) {
	b, err := json.Marshal(doc)
	if err != nil || len(extra) == 0 {
		return b, err
	}
	more, err := json.Marshal(extra)
	if err != nil {
		return nil, err
	}
	b[len(b)-1] = ','
	return append(b, more[1:]...), nil
}
