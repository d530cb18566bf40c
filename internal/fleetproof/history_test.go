// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"fmt"
	"slices"
	"strings"
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
// back to the one that it came with. E12: a fatal config is started as long as it is forgiven, and never again after another one: the start that
// brings it, those that are forgiven, and the one after which they are too many. An agent that was stopped in between has the next start explained.
func unsound(lives [][]string) error {
	all := slices.Concat(lives...)
	if i := slices.IndexFunc(all, func(c string) bool { return c != "" }); i >= 0 && slices.Contains(all[i:], "") {
		return fmt.Errorf("E15: it falls back to the config that it came with: %q", lives)
	}
	for i, c := range all {
		if !strings.HasPrefix(c, fatal) || slices.Index(all, c) != i {
			continue
		}
		starts, agents, last := 0, 0, i
		for j, other := range all {
			if other == c {
				starts, last = starts+1, j
			}
		}
		for _, life := range lives {
			if slices.Contains(life, c) {
				agents++
			}
		}
		if last-i+1 != starts {
			return fmt.Errorf("E12: it is started with %s again after another config: %q", c, lives)
		}
		if most := forgiven + 2 + agents - 1; starts > most {
			return fmt.Errorf("E12: it is started %d times with %s, want %d at most: %q", starts, c, most, lives)
		}
	}
	return nil
}
