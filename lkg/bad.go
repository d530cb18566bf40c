// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// maxWithLines bounds how many entries keep the last lines of the program: those are the bulk of the record.
const maxWithLines = 16

// maxBad bounds the bad list. Beyond it the oldest entry that no record names is dropped.
const maxBad = 512

// badRecord is an entry of the `bad-configs` record, beside its key.
type badRecord struct {
	Time      time.Time `json:"time"`
	Reason    string    `json:"reason"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	Key       string    `json:"key,omitempty"`
	Digest    string    `json:"digest,omitempty"`
	Evidence  string    `json:"evidence,omitempty"`
	Signature string    `json:"signature,omitempty"`
	Last      []string  `json:"last,omitempty"`
	Binary    string    `json:"binary,omitempty"`
}

// decodeBad reads the record. People may edit it: a member of an entry that can not be read is as if it were not
// there, and the entry still holds.
func decodeBad(payload []byte) ([]BadEntry, error) {
	if len(payload) == 0 {
		return nil, nil
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(payload, &doc); err != nil {
		return nil, err
	}
	var out []BadEntry
	for key, raw := range doc {
		uid, _, _ := strings.Cut(key, " ")
		if uid == "" {
			continue
		}
		out = append(out, decodeBadEntry(uid, raw))
	}
	slices.SortFunc(out, compareBad)
	return out, nil
}

func decodeBadEntry(uid string, raw json.RawMessage) BadEntry {
	e := BadEntry{Ref: Ref{UID: uid}}
	var f fields
	if json.Unmarshal(raw, &f) == nil {
		for name, into := range map[string]any{
			"time": &e.Time, "reason": &e.Reason, "evidence": &e.Evidence, "namespace": &e.Ref.Namespace,
			"name": &e.Ref.Name, "key": &e.Ref.Key, "digest": &e.Ref.Digest,
			"signature": &e.Signature, "last": &e.Last, "binary": &e.Binary,
		} {
			_ = f.take(name, into) // a member of a wrong type is ignored: that errs on the side of "bad"
		}
	}
	if e.Reason == "" {
		e.Reason = reasonPerson(e.Ref, "")
	}
	return e
}

func compareBad(a, b BadEntry) int {
	return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Ref.UID, b.Ref.UID), cmp.Compare(a.Ref.Key, b.Ref.Key),
		cmp.Compare(a.Ref.Digest, b.Ref.Digest))
}

// encodeBad writes the record. The first entry of a UID has the UID as its key; further versions of the same object
// have key and digest behind it.
func encodeBad(bad []BadEntry) ([]byte, error) {
	doc := make(map[string]badRecord, len(bad))
	for _, e := range bad {
		key := e.Ref.UID
		if _, taken := doc[key]; taken {
			key += " " + e.Ref.Key + " " + e.Ref.Digest
		}
		if _, taken := doc[key]; taken {
			key += " " + e.Binary
		}
		doc[key] = badRecord{
			e.Time, e.Reason, e.Ref.Namespace, e.Ref.Name, e.Ref.Key, e.Ref.Digest, e.Evidence,
			e.Signature, e.Last, e.Binary,
		}
	}
	return json.MarshalIndent(doc, "", "  ")
}

// addBad lists e, unless it is listed already: the first reason stays. It reports whether the list changed.
func (s *State) addBad(e BadEntry) bool {
	if s.badEntry(e.Ref) != nil {
		return false
	}
	s.Bad = append(s.Bad, e)
	for i := 0; len(s.Bad) > maxBad && i < len(s.Bad); {
		r := s.Bad[i].Ref
		if r.Same(e.Ref) || r.Same(s.Current.Ref) || r.Same(s.LastKnownGood) || r.Same(s.Previous) {
			i++
			continue
		}
		s.Bad = slices.Delete(s.Bad, i, i+1)
	}
	for i := range max(0, len(s.Bad)-maxWithLines) {
		s.Bad[i].Last = nil
	}
	return true
}

// A Class is the kind of evidence for which a config was rejected: Undecodable, Invalid, CrashLoop, Boots, Agent,
// Unhealthy, Request or Other. They are few enough for a label of a metric.
type Class string

// The classes of evidence.
const (
	classUndecodable Class = "Undecodable" // it can't be decoded
	classInvalid     Class = "Invalid"     // it does not pass the checks
	classCrashLoop   Class = "CrashLoop"   // more unexplained starts than its threshold
	classBoots       Class = "Boots"       // more unplanned boots than are tolerated
	classAgent       Class = "Agent"       // more deaths of the agent than are tolerated
	classUnhealthy   Class = "Unhealthy"   // a required probe failed for too long
	classRequest     Class = "Request"     // somebody outside said so
	classOther       Class = "Other"       // listed by another program, or by hand
)

// Class says for which kind of evidence e was listed. It compares the reason with those that this package gives to its
// config, and parses nothing.
func (e BadEntry) Class() Class {
	own, _, _ := strings.Cut(e.Reason, "; (UID: ") // behind it is what BadEntry says about another object
	switch {
	case own == reasonLoad(e.Ref):
		return classUndecodable
	case own == reasonValidate(e.Ref):
		return classInvalid
	case strings.HasPrefix(e.Reason, "rejected (UID: "+e.Ref.UID+"), cause: "):
		return classRequest
	}
	for _, name := range []string{"failed to run current (UID: ", "fallback (UID: "} {
		if rest, ok := strings.CutPrefix(e.Reason, name+e.Ref.UID+")"); ok {
			return classOfEnd(strings.TrimLeft(rest, ", "))
		}
	}
	return classOther
}

// classOfEnd is the class of a reason without the name of the config.
func classOfEnd(text string) Class {
	for _, c := range []struct {
		mark  string
		class Class
	}{
		{"crash loop: ", classCrashLoop},
		{"crashed, ", classCrashLoop},
		{"unplanned boots: ", classBoots},
		{"deaths of the agent: ", classAgent},
		{"required probe ", classUnhealthy},
		{"failed required probe ", classUnhealthy},
	} {
		if strings.HasPrefix(text, c.mark) {
			return c.class
		}
	}
	return classOther
}
