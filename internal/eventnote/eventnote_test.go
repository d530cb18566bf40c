// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package eventnote

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClipNote(t *testing.T) {
	full := strings.Repeat("a", Limit)
	for name, c := range map[string]struct{ note, want string }{
		"empty":           {"", ""},
		"full":            {full, full},
		"one byte more":   {full + "a", full[:Limit-3] + "…"},
		"at a rune":       {full[:Limit-4] + "ééé", full[:Limit-4] + "…"},
		"not valid":       {"a\xff", "a\uFFFD"},
		"longer when cut": {full[:Limit-1] + "\xff", full[:Limit-3] + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ClipNote(c.note)
			if got != c.want || len(got) > Limit || !utf8.ValidString(got) {
				t.Errorf("got %d bytes %q, want %q", len(got), got, c.want)
			}
		})
	}
}
