// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"

	"github.com/belayproject/belay/rollout/protocol"
)

// R-RO-33: another content under the same name is another revision.
func TestRevisionIsPinned(t *testing.T) {
	for _, c := range []struct {
		want, runs string
		same       bool
	}{
		{"v2@sha256:aa", "v2@sha256:aa", true},
		{"v2@sha256:aa", "v2@sha256:bb", false},
		{"v2@sha256:aa", "v2", false},
		{"v2", "v2@sha256:aa", true},
		{"v2", "v2", true},
		{"v2", "v1", false},
		{"v2@sha256:aa", "v1@sha256:aa", false},
		{"", "", false},
		{"", "v1", false},
		{"@sha256:aa", "@sha256:aa", false},
	} {
		want, runs := protocol.ParseRevision(c.want), protocol.ParseRevision(c.runs)
		if got := want.Is(runs); got != c.same {
			t.Errorf("%q is %q: got %t, want %t", c.want, c.runs, got, c.same)
		}
		if got := runs.String(); got != c.runs {
			t.Errorf("String: got %q, want %q", got, c.runs)
		}
	}
}
