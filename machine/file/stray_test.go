// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"strings"
	"testing"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/file"
)

// R-MA-02 and R-MA-12: a machine that has a Node to remove is not moved: its status alone knows of that, and stays behind. One that nobody waits for is no hindrance.
func TestStrayIsNotLeftByAMove(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a")
	s, err := file.Open(dir)
	must(t, err)
	defer func() { must(t, s.Close()) }()
	_, err = s.Refresh()
	must(t, err)
	for left, want := range map[string]bool{"": true, "somebody does not wait for it": false} {
		m, err := s.Live(t.Context(), theMachine)
		must(t, err)
		m.Strays = []machine.Stray{{Token: "c1-a-1", Left: left}}
		_, err = s.PutStatus(t.Context(), m)
		must(t, err)
		_, err = s.Export()
		if is := err != nil && strings.Contains(err.Error(), `a Node of the instance "c1-a-1", which has ended, is still to be removed`); is != want {
			t.Errorf("R-MA-12: with a Node that is left as %q: %v", left, err)
		}
	}
}
