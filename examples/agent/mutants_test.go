// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests of the process catch an agent that is broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a stop is not on record", File: "run.go", Run: "TestStopsOfTheAgent",
			Old: "if err := a.syncer.Stopping(ctx); err != nil {", New: "if err := ctx.Err(); err != nil {"},
		{Name: "what is in the way of a start counts against the config", File: "run.go", Run: "TestAMissingProgram",
			Old: "a.stopping(ctx) // what is in the way", New: "// what is in the way"},
		{Name: "a refusal is not reported", File: "run.go", Run: "TestAgentRefusesABadInit",
			Old: "a.refused(ctx, err)\n", New: "\n"},
		{Name: "a config is not announced before it is used", File: "run.go", Run: "TestConditionIsThere",
			Old: "if err := a.syncer.Announce(ctx); err != nil {", New: "if err := ctx.Err(); err != nil {"},
		{Name: "nobody asks for the guard", File: "update/part.go", Run: "TestSecondAgentOfANode", Old: `if r.o.Guard == "" {`, New: `if r.o.Guard != "" {`},
		{Name: "orders are followed without the Lease", File: "update/agent.go", Run: "TestSecondAgentOfANode",
			Old: "g.Go(func() error { return m.Run(ctx, r.hold) })", New: "r.enter(ctx)\n\tg.Go(func() error { return m.Run(ctx, r.hold) })"},
		{Name: "what has begun waits for the server", File: "update/agent.go", Run: "TestABootWithoutTheServer",
			Old: "g.Go(func() error { return a.Run(ctx) })",
			New: "g.Go(func() error {\n\t\tfor !r.door.open.Load() {\n\t\t\twait(ctx, time.Second)\n\t\t}\n\t\treturn a.Run(ctx)\n\t})"},
		{Name: "a second agent takes its kubelet with it", File: "rollouts.go", Run: "TestSecondAgentKeepsItsKubelet",
			Old: "a.log.Error(err, \"Takes no part in rollouts, looking again\", \"node\", a.s.NodeName)", New: "a.log.Error(err, \"Ends\")\n\t\tos.Exit(1)"},
		{Name: "wanted addresses are required", File: "wire/parts.go", Run: "TestAgentWaits", Old: "configsync.Wanted(p))", New: "p)"},
		{Name: "nobody waits for the word", File: "wire/parts.go", Run: "TestAgentWaits|TestAgentLeavesWhat", Old: "o.Ack, o.WatchAfter = ack(s), s.WatchAfter", New: "o.WatchAfter = s.WatchAfter"},
		{Name: "nobody looks after a promotion", File: "wire/parts.go", Run: "TestAgentWaits", Old: "o.Ack, o.WatchAfter = ack(s), s.WatchAfter", New: "o.Ack = ack(s)"},
		{Name: "the log has no detail", File: "wire/log.go", Run: "TestLogHasDetail", Old: "return bad.Evidence", New: "return bad.Reason"},
	})
}
