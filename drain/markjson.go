// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// Fields of a mark that this version does not know belong to a newer one, or to a holder that is served by one. They are kept as they
// are through every write, so that versions can be mixed.

// UnmarshalJSON keeps the fields that are not known.
func (m *mark) UnmarshalJSON(data []byte) (err error) {
	type plain mark
	m.extra, err = decodeKeeping(data, (*plain)(m))
	return err
}

// MarshalJSON writes them again.
func (m mark) MarshalJSON() ([]byte, error) {
	type plain mark
	return encodeWith(plain(m), m.extra)
}

// UnmarshalJSON keeps the fields that are not known.
func (h *holder) UnmarshalJSON(data []byte) (err error) {
	type plain holder
	h.extra, err = decodeKeeping(data, (*plain)(h))
	return err
}

// MarshalJSON writes them again.
func (h holder) MarshalJSON() ([]byte, error) {
	type plain holder
	return encodeWith(plain(h), h.extra)
}

// decodeKeeping decodes into a struct, and returns what that has no field for.
func decodeKeeping(data []byte, into any) (map[string]json.RawMessage, error) {
	if err := json.Unmarshal(data, into); err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	t := reflect.TypeOf(into).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		delete(all, name)
	}
	return all, nil
}

// encodeWith encodes a struct with further fields.
func encodeWith(v any, extra map[string]json.RawMessage) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil || len(extra) == 0 {
		return data, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	maps.Copy(all, extra)
	return json.Marshal(all)
}
