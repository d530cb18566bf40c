// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// In an object a slot is one line of text. With an object for each of 250 slots a write of the ledger is four times the work for the API server, which decodes,
// copies, prunes and checks each field by itself; and the next node waits for that write.

// Slot is the place of one node in a ledger: the right to disrupt it. In an object it is a line, with these fields in this order and a space between them, the
// last two only where there are any:
//
//	node=worker-1 uid=3c1d5a5e attempt=12 rollout=7e0f0ab0 state=Broken keys=class/Intrusive,zone/a
//
// A space, a comma, a percent sign or a control character in a value is written as in a URL: %20.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=8192
// +kubebuilder:validation:Pattern=`^node=[^ ,]+ uid=[^ ,]+ attempt=[1-9][0-9]{0,18} rollout=[^ ,]+( state=(Suspect|Broken|Quarantined))?( keys=[^ ,]+(,[^ ,]+){0,15})?$`
type Slot struct {
	// Node is the name of the Node, UID its UID.
	Node, UID string
	// Attempt is the permission that the slot stands for.
	Attempt int64
	// Rollout is the UID of the rollout that it was admitted for.
	Rollout string
	// State is what is thought of a node that does not go well. Empty as long as all goes well.
	State SlotState
	// Keys are what else than the total the slot counts for: "zone/a", "class/Intrusive". There are 16 at most.
	Keys []string
}

// SlotState is what is thought of a node that does not go well: Suspect, Broken or Quarantined.
type SlotState string

// String is the line that stands for the slot.
func (s Slot) String() string {
	var b strings.Builder
	b.WriteString("node=" + escape(s.Node) + " uid=" + escape(s.UID) + " attempt=" + strconv.FormatInt(s.Attempt, 10) + " rollout=" + escape(s.Rollout))
	if s.State != "" {
		b.WriteString(" state=" + escape(string(s.State)))
	}
	for i, key := range s.Keys {
		if i == 0 {
			b.WriteString(" keys=")
		} else {
			b.WriteByte(',')
		}
		b.WriteString(escape(key))
	}
	return b.String()
}

// ParseSlot reads a line. It must be exactly as String writes it.
func ParseSlot(line string) (Slot, error) {
	var s Slot
	for part := range strings.SplitSeq(line, " ") {
		name, value, _ := strings.Cut(part, "=")
		if err := s.set(name, value); err != nil {
			return Slot{}, fmt.Errorf("slot %q: %s: %w", line, name, err)
		}
	}
	if want := s.String(); want != line {
		return Slot{}, fmt.Errorf("slot %q: want its fields once each, and in this order: %q", line, want)
	}
	return s, nil
}

// set reads one field.
func (s *Slot) set(name, value string) (err error) {
	switch name {
	case "node":
		s.Node, err = url.PathUnescape(value)
	case "uid":
		s.UID, err = url.PathUnescape(value)
	case "attempt":
		s.Attempt, err = strconv.ParseInt(value, 10, 64)
	case "rollout":
		s.Rollout, err = url.PathUnescape(value)
	case "state":
		s.State = SlotState(value)
	case "keys":
		s.Keys = strings.Split(value, ",")
		for i := range s.Keys {
			if s.Keys[i], err = url.PathUnescape(s.Keys[i]); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("there is no such field")
	}
	return err
}

// escape writes what would end a value as in a URL.
func escape(value string) string {
	ends := func(c rune) bool { return c <= ' ' || c == ',' || c == '%' || c == 0x7f }
	if !strings.ContainsFunc(value, ends) {
		return value
	}
	var b strings.Builder
	for _, c := range []byte(value) {
		if ends(rune(c)) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// MarshalJSON implements [json.Marshaler].
func (s Slot) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Slot) UnmarshalJSON(text []byte) error {
	var line string
	if err := json.Unmarshal(text, &line); err != nil {
		return fmt.Errorf("a slot is a line of text: %w", err)
	}
	is, err := ParseSlot(line)
	*s = is
	return err
}
