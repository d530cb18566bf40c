// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package appoption

import (
	"testing"

	"github.com/spf13/cobra"
)

// All problems are in one error, and no argument gets past it.
func TestProblemsFailTheCommand(t *testing.T) {
	var p Problems
	var part *int
	Named(&p, "WithGate", "", any(nil), map[string]bool{}, "freeze")
	Named(&p, "WithGate", "a", any(1), map[string]bool{"a": true}, "freeze")
	p.Given("WithPart", part)
	p.Given("WithPart", new(int))
	const want = `app.NewCommand: WithGate: name is required (such as "freeze"); WithGate: its argument is nil (leave the option out instead); ` +
		`WithGate: name "a" is there already (give each a name of its own); WithPart: its argument is a nil *int (leave the option out instead)`
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"version"}, {"run", "--x", "--", "y"}} {
		c := p.Command(&cobra.Command{Use: "agent"})
		c.SetArgs(args)
		if err := c.Execute(); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", args, err, want)
		}
	}
}

func TestNoProblemIsTheCommand(t *testing.T) {
	var p Problems
	Named(&p, "WithGate", "b", any(1), map[string]bool{"a": true}, "freeze")
	c := &cobra.Command{Use: "agent"}
	if err := p.Err(); err != nil || p.Command(c) != c {
		t.Errorf("got %v, want no problem", err)
	}
}
