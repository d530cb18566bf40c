// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch a Memory, and a suite, that are broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "used-up tokens are forgotten", File: "memory.go", Old: "m.used[token] = true", New: "m.used[token] = false", Run: "TestMemory$"},
		{Name: "disks are leaked", File: "memory.go", Old: "delete(m.disks, d.ID)", New: "_ = d", Run: "TestMemory$"},
		{Name: "any cluster will do", File: "memory.go", Old: "v == nil || v.Owner.Cluster != cluster", New: "v == nil", Run: "TestMemory$"},
		{Name: "any digest will do", File: "memory_calls.go", Old: "v != nil && v.Digest != r.Digest", New: "v != nil && r.Digest == \"\"", Run: "TestMemory$"},
		{Name: "what was retained is built again", File: "memory_calls.go", Old: "if v.State == provider.Retained {\n\t\treturn nil",
			New: "if v.State == provider.Retained {\n\t\tv.State = provider.Pending\n\t}\n\tif false {\n\t\treturn nil", Run: "TestMemory$"},
		{Name: "slow starts are quick", File: "memory_calls.go", Old: " && m.faults[SlowStart] == 0", New: "", Run: "TestMemory$"},
		{Name: "Retain destroys", File: "memory_calls.go", Old: "mode != provider.Destroy && len", New: "mode == \"\" && len", Run: "TestMemory$"},
		{Name: "stopping takes no time", File: "memory_calls.go", Old: `return m.asked(v, "delete"), step(ctx)`, New: "return true, step(ctx)", Run: "TestMemoryTakesPolls"},
		{Name: "there is no limit", File: "memory_calls.go", Old: "m.inventory().Instances+more > m.Limit", New: "more > 9*m.Limit", Run: "TestMemoryAccidents"},
		{Name: "what is to be replaced is updated", File: "memory_abilities.go", Old: "case plan.Method != provider.InPlace:",
			New: "case plan.Method == provider.Unsupported:", Run: "TestMemory$"},
		{Name: "ids of reboots are forgotten", File: "memory_abilities.go", Old: "v.rebooted[id], v.State = true,", New: "v.rebooted[id], v.State = false,", Run: "TestMemory$"},
		{Name: "who was adopted keeps its owner", File: "memory_abilities.go", Old: "v.Token, v.Owner, v.made = r.As.Token, r.As.Owner, r.As",
			New: "v.Token, v.made = r.As.Token, r.As", Run: "TestMemory$"},
		{Name: "lists are never behind", File: "memory_faults.go", Old: "if time.Since(s.at) >= m.ListLag {\n\t\t\tall", New: "if s.at.IsZero() || true {\n\t\t\tall", Run: "TestMemoryListLags"},
		{Name: "calls do not end with ctx", File: "memory_faults.go", Old: "case <-ctx.Done():\n\t\t}", New: "}", Run: "TestMemoryLatency"},
		{Name: "nobody is told to wait", File: "memory_faults.go", Old: "err.After = 7 * time.Second", New: "err.After = 0", Run: "TestMemory$"},

		{Name: "classes are not compared", File: "calls.go", Old: "got := provider.ClassOf(err); got != want", New: "got := provider.ClassOf(err); got != want && want == \"\"", Run: "TestBroken"},
		{Name: "instances are not compared", File: "rules_create.go", Old: "\tnow := k.again(p, r)\n",
			New: "\tnow := k.again(p, r)\n\twas = now\n", Run: "TestBroken"},
		{Name: "instances are not counted", File: "checker.go", Old: "got := k.count(); got.Instances != want {", New: "got := k.count(); got.Instances < 0 {", Run: "TestBroken"},
		{Name: "what is left is not seen", File: "checker.go", Old: "if left != (Inventory{}) || err != nil {", New: "if err != nil {", Run: "TestBroken"},
		{Name: "secrets are not sought in errors", File: "secrets.go", Old: `k.seek(call, "error", err.Error())`, New: `k.seek(call, "error", "")`, Run: "TestBroken"},
		{Name: "skips have no reason", File: "suite.go", Old: "result.Outcome, result.Why = Skipped, why", New: "result.Outcome = Skipped", Run: "TestSparseHarness|TestMinimal"},
		{Name: "failures are no failures", File: "suite.go", Old: "t.Error(r)", New: "t.Log(r)", Run: "TestRunFails"},
		{Name: "parts that are not checked are not named", File: "checker.go", Old: "k.unchecked = append(k.unchecked, fmt.Sprintf(\"%s: %s\", part",
			New: "_ = append(k.unchecked, fmt.Sprintf(\"%s: %s\", part", Run: "TestSparseHarness"},
		{Name: "rules do not clean up", File: "checker.go", Old: "\t\t\t_, err := k.deleted(p, d)\n\t\t\treturn err", New: "\t\t\t_, _ = p, d\n\t\t\treturn nil", Run: "TestMemory$"},
		{Name: "a rule that was cut off leaves its instances", File: "checker.go", Old: "\tk.ctx = context.WithoutCancel(k.ctx)\n", New: "", Run: "TestEndedSuite"},
	})
}
