// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package releasecheck

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// EmptyAliases returns the aliases of an OWNERS_ALIASES file that have no member, sorted.
func EmptyAliases(text string) ([]string, error) {
	var owners struct {
		Aliases map[string][]string `json:"aliases"`
	}
	if err := yaml.Unmarshal([]byte(text), &owners); err != nil {
		return nil, fmt.Errorf("reading OWNERS_ALIASES: %w", err)
	}
	var empty []string
	for alias, members := range owners.Aliases {
		if len(members) == 0 {
			empty = append(empty, alias)
		}
	}
	slices.Sort(empty)
	return empty, nil
}
