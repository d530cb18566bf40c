// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
)

// notes say what a release of nodes will not do, and why, before it does nothing silently.
func notes(cache drain.Cache, nodes []string, holder string) []string {
	var lines []string
	for _, name := range nodes {
		node := cache.Node(name)
		if node == nil {
			continue
		}
		var mine bool
		var others []string
		for _, h := range holders(node) {
			if h == holder {
				mine = true
			} else {
				others = append(others, h)
			}
		}
		switch {
		case !mine && len(others) == 0 && node.Spec.Unschedulable:
			lines = append(lines, fmt.Sprintf("%s: cordoned, but not by a drain: kubectl uncordon %s", name, name))
		case !mine && len(others) == 0:
			lines = append(lines, fmt.Sprintf("%s: nobody holds it", name))
		case !mine:
			lines = append(lines, fmt.Sprintf("%s: not held by %s; --holder must be one of: %s", name, holder, strings.Join(others, ", ")))
		case len(others) > 0:
			lines = append(lines, fmt.Sprintf("%s: stays cordoned, because it is also held by %s", name, strings.Join(others, ", ")))
		}
	}
	return lines
}

// holders names who holds a node, by its mark. A mark that can't be read names nobody: the release itself says what is wrong with it.
func holders(node *corev1.Node) []string {
	var mark struct {
		Holders []struct {
			Holder string `json:"holder"`
		} `json:"holders"`
	}
	if node == nil || json.Unmarshal([]byte(node.Annotations[drain.MarkAnnotation]), &mark) != nil {
		return nil
	}
	var names []string
	for _, h := range mark.Holders {
		names = append(names, h.Holder)
	}
	return names
}
