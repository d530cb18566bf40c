// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"bytes"
	"encoding/json"
	"maps"
)

// mergePatch applies an RFC 7386 patch to an object and decodes the result into out.
func mergePatch(object any, patch []byte, out any) error {
	have, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var target, change map[string]any
	if err := decodeNumbers(have, &target); err != nil {
		return err
	}
	if err := decodeNumbers(patch, &change); err != nil {
		return err
	}
	merged, err := json.Marshal(merge(target, change))
	if err != nil {
		return err
	}
	return json.Unmarshal(merged, out)
}

// decodeNumbers keeps integers exact.
func decodeNumbers(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

func merge(target, change map[string]any) map[string]any {
	out := maps.Clone(target)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range change {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(out, key)
		case isObject:
			below, _ := out[key].(map[string]any)
			out[key] = merge(below, inner)
		default:
			out[key] = value
		}
	}
	return out
}
