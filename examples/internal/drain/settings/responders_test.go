// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"slices"
	"strings"
	"testing"
)

// R-DR-15: responders are named one by one or in a list, and a name that no pod can ask for is refused.
func TestResponders(t *testing.T) {
	var s Drain
	if err := parse(&s, "n1", "--responder=migrate,copy", "--responder=park"); err != nil || !slices.Equal(s.Known, []string{"migrate", "copy", "park"}) {
		t.Errorf("got %q, %v, want three names", s.Known, err)
	}
	for _, bad := range []string{"migrate,", " migrate", ","} {
		err := parse(&Plan{}, "n1", "--responder="+bad)
		if err == nil || !strings.Contains(err.Error(), "--responder=") || !strings.Contains(err.Error(), "must be a name as in the annotation") {
			t.Errorf("--responder=%q: got %v, want it refused with what would be right", bad, err)
		}
	}
}
