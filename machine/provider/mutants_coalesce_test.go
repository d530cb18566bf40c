// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import "github.com/belayproject/belay/internal/mutate"

func coalesceMutants() []mutate.Mutant {
	return []mutate.Mutant{
		{Name: "a Get is answered from any list", File: "coalesce_list.go", Run: "TestCoalesceGetLeavesFewCallsAlone",
			Old: "came.Sub(c.cache.at) < c.window:", New: "came.Sub(c.cache.at) <= c.window:"},
		{Name: "each Get lists", File: "coalesce_list.go", Run: "TestCoalesceGet",
			Old: "\t\tc.asked = now\n", New: ""},
		{Name: "what is not listed is not there", File: "coalesce_list.go", Run: "TestCoalesceGetAsksForWhatIsNotListed",
			Old: "if !ok || ch.event", New: "if !ok && ok || ch.event"},
		{Name: "another ProviderID is the same", File: "coalesce_list.go", Run: "TestCoalesceGetAsksForWhatIsNotListed",
			Old: ` || ref.ProviderID != "" && ref.ProviderID != i.ProviderID`, New: ""},
		{Name: "a change is no reason", File: "coalesce_list.go", Run: "TestCoalesceGetForgetsWhatChanges",
			Old: "ch.event > c.cache.event ||", New: ""},
		{Name: "a list from before a change knows it", File: "coalesce_list.go", Run: "TestCoalesceGetForgetsWhatChanges",
			Old: "\treturn func() { mark(-1) }",
			New: "\treturn func() {\n\t\tc.mu.Lock()\n\t\tdefer c.mu.Unlock()\n\t\tc.changed[token] = change{c.changed[token].event, c.changed[token].running - 1}\n\t}"},
		{Name: "what is under way has happened", File: "coalesce_list.go", Run: "TestCoalesceGetForgetsWhatChanges",
			Old: `ch.running > 0 || token == ""`, New: `token == ""`},
		{Name: "adopting changes one instance", File: "coalesce.go", Run: "TestCoalesceGetForgetsWhatChanges",
			Old: "\tdefer a.c.change(tokenIn(r.From))()\n", New: ""},
		{Name: "stopping changes nothing", File: "coalesce.go", Run: "TestCoalesceGetForgetsWhatChanges",
			Old: "\tdefer a.c.change(tokenIn(ref))()\n\treturn a.inner.Power.Stop", New: "\treturn a.inner.Power.Stop"},
		{Name: "a Ref without a token changes nothing", File: "coalesce.go", Run: "TestCoalesceGetForgetsWhatFails",
			Old: "\treturn TokenOf(ref.ProviderID)\n", New: "\treturn \"\"\n"},
		{Name: "one who goes fails all", File: "coalesce_list.go", Run: "TestCoalesceGetSurvivesItsLeader",
			Old: "err != nil && ctx.Err() == nil && passing(err) {", New: "err != nil && passing(err) {"},
		{Name: "whoever waits can't go", File: "coalesce_list.go", Run: "TestCoalesceGetSurvivesItsLeader",
			Old: "\t\tcase <-f.done:\n\t\tcase <-ctx.Done():\n", New: "\t\tcase <-f.done:\n"},
		{Name: "a bad list is made again and again", File: "coalesce_list.go", Run: "TestCoalesceGetWithoutLists",
			Old: "err == nil || ctx.Err() == nil && !passing(err)", New: "err == nil"},
		{Name: "a list that fails is an empty one", File: "coalesce_list.go", Run: "TestCoalesceGetWithoutLists",
			Old: "ctx.Err() == nil && !passing(err))", New: "ctx.Err() == nil)"},
		{Name: "After is lost", File: "coalesce_list.go", Run: "TestCoalesceGetWithoutLists",
			Old: "AfterOf(f.err)", New: "0"},
		{Name: "lists of any scope are kept", File: "coalesce.go", Run: "TestCoalesceGetAndLists",
			Old: "if s != p.c.scope {", New: "if len(s.Cluster) > 99 {"},
		{Name: "an earlier list replaces a later one", File: "coalesce_list.go", Run: "TestCoalesceGetAndLists",
			Old: "if l.event < c.cache.event {", New: "if l.event < 0 {"},
		{Name: "callers share an answer", File: "coalesce_list.go", Run: "TestCoalesceGetGivesCopies",
			Old: "\t\treturn copied(i), nil, answer", New: "\t\treturn i, nil, answer"},
		{Name: "the list is shared", File: "coalesce_list.go", Run: "TestCoalesceGetGivesCopies",
			Old: "= copied(i)\n", New: "= i\n"},
		{Name: "changes are never forgotten", File: "coalesce_list.go", Run: "TestCoalesceGetDoesNotGrow",
			Old: "ch.running == 0 && ch.event < l.event", New: "ch.event < 0"},
	}
}
