// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"

	"github.com/belayproject/belay/rollout/protocol"
)

// A boundSet are nodes whose slots count for the same keys.
type boundSet struct {
	keys  []string
	nodes int
}

// boundInFlight is how many of some nodes can have slots at a time. Caps of one kind, which is what stands before the slash of a key, add up over its
// keys, as every zone can be full at once; the strictest kind decides. It is exact if, besides the total, caps of one kind bind, and too high by
// some at most if zones and groups cut across each other.
func boundInFlight(sets []boundSet, caps []protocol.Cap) int {
	n := 0
	for _, s := range sets {
		n += s.nodes
	}
	strictest := map[string]int{}
	kinds := map[string]bool{}
	for _, c := range caps {
		if m, ok := strictest[c.Key]; !ok || c.Max < m {
			strictest[c.Key] = c.Max
		}
		kinds[boundKind(c.Key)] = true
	}
	all := n
	for kind := range kinds {
		n = min(n, boundOfKind(kind, sets, all, strictest))
	}
	return n
}

// boundOfKind is how many nodes of all the caps of one kind let have slots at a time.
func boundOfKind(kind string, sets []boundSet, all int, strictest map[string]int) int {
	if kind == "" {
		return min(all, strictest[""])
	}
	free, counted := 0, map[string]int{}
	for _, s := range sets {
		capped := false
		for _, k := range s.keys {
			if _, ok := strictest[k]; ok && boundKind(k) == kind {
				counted[k] += s.nodes
				capped = true
			}
		}
		if !capped {
			free += s.nodes
		}
	}
	for k, m := range counted {
		free += min(m, strictest[k])
	}
	return free
}

func boundKind(key string) string {
	kind, _, _ := strings.Cut(key, "/")
	return kind
}
