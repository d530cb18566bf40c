// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import "slices"

// rule is one promise, and how to see that it is kept.
type rule struct {
	Rule
	needs []need
	check func(k *checker)
}

func promise(name, text string, check func(k *checker), needs ...need) rule {
	return rule{Rule: Rule{Name: name, Text: text}, needs: needs, check: check}
}

// rules returns all of them. The last ones are about what was seen in the others.
func rules() []rule {
	return slices.Concat(createRules(), readRules(), configRules(), deleteRules(), diskRules(), updateRules(), powerRules(), crashRules(), faultRules(),
		manyRules(), lastRules())
}
