// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// forgiven is the crash-loop threshold of every config here: so many starts that nothing explains are forgiven.
const forgiven = 1

// wrong is what a node's process was started with and must not have been.
func (a *agent) wrong() error {
	if err := unsound(a.starts()); err != nil {
		return fmt.Errorf("node %s: %w", a.name, err)
	}
	return nil
}

// unsound is what is wrong with the starts of a node's process, by each of the agents that it had one after the other. E15: a node that has a config never falls
// back to the one that it came with. E12: a fatal config is started as long as it is forgiven. Then another one shows that the node lives, and the fatal one is
// started as often once more; after that never again. An agent that was stopped in between has the next start explained.
func unsound(lives [][]string) error {
	all := slices.Concat(lives...)
	if i := slices.IndexFunc(all, func(c string) bool { return c != "" }); i >= 0 && slices.Contains(all[i:], "") {
		return fmt.Errorf("E15: it falls back to the config that it came with: %q", lives)
	}
	for i, c := range all {
		if !strings.HasPrefix(c, fatal) || slices.Index(all, c) != i {
			continue
		}
		starts, agents, tries := 0, 0, 0
		for j, other := range all {
			if other != c {
				continue
			}
			if starts++; j == i || all[j-1] != c {
				tries++
			}
		}
		for _, life := range lives {
			if slices.Contains(life, c) {
				agents++
			}
		}
		if tries > 2 {
			return fmt.Errorf("E12: it is started with %s on %d occasions, want 2 at most: %q", c, tries, lives)
		}
		if most := 2*(forgiven+1) + agents - 1; starts > most {
			return fmt.Errorf("E12: it is started %d times with %s, want %d at most: %q", starts, c, most, lives)
		}
	}
	return nil
}

// A past is a life that is over.
type past struct {
	starts  []string
	crashed string
}

func (past) Runs(string) (config string, ok bool) { return "", false }

func (p past) Starts(string) []string { return p.starts }

func (p past) Crashed(digest string) (nodes []string) {
	if p.crashed == digest {
		nodes = append(nodes, "a")
	}
	return nodes
}

// A node that a config has broken is one after its agent was restarted, too; and what it was started with before is not forgotten.
func TestAgentsRememberThoseBeforeThem(t *testing.T) {
	a := &agent{name: "a", lives: []life{past{[]string{"", "good-1", "fatal-2"}, "d"}, past{[]string{"", "good-3"}, ""}}}
	if !a.crashed("d") || a.crashed("e") {
		t.Errorf("broken by d: got %t, by e: %t", a.crashed("d"), a.crashed("e"))
	}
	if err := a.wrong(); err == nil || !strings.Contains(err.Error(), "E15") {
		t.Errorf("it falls back in its second life: got %v", err)
	}
}

// An agent that nobody has stopped and that has ended is told.
func TestAgentsThatEndAreTold(t *testing.T) {
	a := &agent{name: "a", gone: make(chan struct{})}
	if err := a.alive(); err != nil {
		t.Errorf("it lives: got %v", err)
	}
	if close(a.gone); a.alive() == nil {
		t.Errorf("it has ended: got nothing")
	}
}

// In a fleet of any size more nodes have swap than a fatal config may break, which is what stops it and what is under way then, and some that may leave have none.
func TestFatalConfigsCouldBreakMore(t *testing.T) {
	for nodes := fewNodes; nodes <= 1200; nodes++ {
		plan, canaries := planFor(nodes), max(1, nodes/25)
		swap, none := 0, 0
		for i := canaries; i < nodes; i++ {
			if hasSwap(i, canaries, nodes) {
				swap++
			} else {
				none++
			}
		}
		if most := plan.StopAt + plan.Cap - 1; swap <= most || none == 0 {
			t.Errorf("%d nodes: %d have swap and may be broken up to %d, %d have none", nodes, swap, most, none)
		}
	}
}
