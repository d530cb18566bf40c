// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"

	"github.com/belayproject/belay/rollout/protocol"
)

// boundInFlight is how many of some nodes can have slots at a time: keys are what each node's slot counts for. Caps of one kind, which is what stands
// before the slash of a key, add up over its keys, as every zone can be full at once; the strictest kind decides. It is exact if, besides the
// total, caps of one kind bind, and too high by some at most if zones and groups cut across each other.
func boundInFlight(keys [][]string, caps []protocol.Cap) int {
	n := len(keys)
	strictest := map[string]int{}
	kinds := map[string]bool{}
	for _, c := range caps {
		if m, ok := strictest[c.Key]; !ok || c.Max < m {
			strictest[c.Key] = c.Max
		}
		kinds[boundKind(c.Key)] = true
	}
	for kind := range kinds {
		n = min(n, boundOfKind(kind, keys, strictest))
	}
	return n
}

// boundOfKind is how many nodes the caps of one kind let have slots at a time.
func boundOfKind(kind string, keys [][]string, strictest map[string]int) int {
	if kind == "" {
		return min(len(keys), strictest[""])
	}
	free, counted := 0, map[string]int{}
	for _, ks := range keys {
		capped := false
		for _, k := range ks {
			if _, ok := strictest[k]; ok && boundKind(k) == kind {
				counted[k]++
				capped = true
			}
		}
		if !capped {
			free++
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
