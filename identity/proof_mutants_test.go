// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestWallClockRuleIsCaught: the rule of upstream's collectors, which compare the renewTime of the holder with the clock of the observer, collects
// members that live and leaves dead ones for ever. R-ID-10.
func TestWallClockRuleIsCaught(t *testing.T) {
	mutate.Kill(t, []mutate.Mutant{{
		Name: "renewTime is compared with the wall clock", File: "collector.go", Run: "^TestNobodyAliveIsCollected$",
		Old: "	all := due(c.view.Peers(Lost), c.view.canary, c.config.GCAfter)\n",
		New: `	var all []Peer
	for _, p := range c.view.Peers() {
		if at := p.Lease.Spec.RenewTime; at.Add(c.config.GCAfter).Before(c.view.clock.Now()) && p.Key != c.view.canary {
			all = append(all, p)
		}
	}
`,
	}})
}

// TestBrokenIdentitiesAreCaught shows that the worlds find what is wrong with a member, a view or a collector.
func TestBrokenIdentitiesAreCaught(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "whoever is lost is collected", File: "collector_report.go", Run: "^TestNobodyAliveIsCollected$",
			Old: " && p.Quiet >= gcAfter", New: " && gcAfter > 0"},
		{Name: "a suspect is lost", File: "view_tracker.go", Run: "^TestNobodyAliveIsCollected$",
			Old: "	limit := t.liveness\n", New: "	limit := t.suspectAfter\n"},
		{Name: "nothing is collected", File: "collector.go", Run: "^TestNobodyAliveIsCollected$",
			Old: "min(len(all), c.config.MaxPerPass)", New: "0"},
		{Name: "the next holder does not wait", File: "adopt.go", Run: "^TestNobodyAliveIsCollected$",
			Old: "s.quiet >= s.liveness:", New: "s.quiet >= s.liveness/2:"},
		{Name: "any file at the path proves the end of the holder", File: "lockfile_unix.go", Run: "^TestNobodyAliveIsCollected$",
			Old: "return fmt.Sprintf(\"%d:%d\", st.Dev, st.Ino), nil", New: "return f.Name(), nil"},
		{Name: "the hold counts from the answer", File: "member_hold.go", Run: "^TestNobodyAliveIsCollected$",
			Old: "t.lease, t.good, t.retry = r.value, r.sent, backoff{}", New: "t.lease, t.good, t.retry = r.value, r.answered, backoff{}"},
		{Name: "Epoch does not look at the clock", File: "member_status.go", Run: "^TestNobodyAliveIsCollected$",
			Old: "return k.held && now-k.good < t.Hold", New: "return k.held"},
		{Name: "a foreign holder is renewed", File: "member_hold.go", Run: "^TestNobodyAliveIsCollected$",
			Old: "\tcase holderOf(r.value) != t.epoch.Holder:\n\t\treturn Taken\n", New: ""},
		{Name: "the release takes for ever", File: "member_release.go", Run: "^TestNobodyAliveIsCollected$",
			Old: "context.WithTimeout(ctx, m.spec.Timing.Stop)", New: "context.WithTimeout(ctx, 100*m.spec.Timing.Stop)"},
	})
}
