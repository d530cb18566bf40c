// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import "testing"

// R-RO-07: what the ConfigMap says, and that what nobody understands is off, with what would be right.
func TestToggle(t *testing.T) {
	for _, c := range []struct {
		data map[string]string
		want string
	}{
		{nil, ""},
		{map[string]string{"disabled": "false", "reason": "it was"}, ""},
		{map[string]string{"reason": "it was"}, ""},
		{map[string]string{"disabled": "true", "reason": "maintenance, ask ada"}, "maintenance, ask ada"},
		{map[string]string{"disabled": "true"}, `ConfigMap "n/c" has switched everything off`},
		{map[string]string{"disabled": "yes"}, `data.disabled of ConfigMap "n/c" is "yes", want "true" or "false"`},
		{map[string]string{"disabled": "1"}, `data.disabled of ConfigMap "n/c" is "1", want "true" or "false"`},
		{map[string]string{"disabled": ""}, `data.disabled of ConfigMap "n/c" is "", want "true" or "false"`},
		{map[string]string{"off": "true"}, `data of ConfigMap "n/c" has the key "off", want "disabled" and "reason" alone`},
	} {
		if got := offBy("n/c", c.data); got != c.want {
			t.Errorf("%q: got %q, want %q", c.data, got, c.want)
		}
	}
}
