// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// inMemory is the suite of Leases on the server that the mutants break.
const inMemory = "^TestServerInMemoryFollowsTheRules$"

// TestBrokenServersAreCaught: a fake that has not the rules of the API server fails TestLeases.
func TestBrokenServersAreCaught(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "an update of an old version is taken", File: "client.go", Run: inMemory,
			Old: "case lease.ResourceVersion != found.ResourceVersion:", New: "case false:"},
		{Name: "an update does not look at the UID", File: "client.go", Run: inMemory,
			Old: "case lease.UID != \"\" && lease.UID != found.UID:", New: "case false:"},
		{Name: "a deletion does not look at the UID", File: "client.go", Run: inMemory,
			Old: "if p.UID != nil && *p.UID != found.UID {", New: "if false {"},
		{Name: "a deletion does not look at the version", File: "client.go", Run: inMemory,
			Old: "if p.ResourceVersion != nil && *p.ResourceVersion != found.ResourceVersion {", New: "if false {"},
		{Name: "a PUT creates what was deleted", File: "client.go", Run: inMemory,
			Old: "case !ok && lease.UID == \"\" && lease.ResourceVersion == \"\":", New: "case !ok:\n\t\t\tlease = lease.DeepCopy()"},
		{Name: "versions are counted by Lease", File: "server.go", Run: inMemory,
			Old: "lease.ResourceVersion = strconv.FormatUint(s.version, 10)\n\tif kind",
			New: "lease.ResourceVersion = \"2\"\n\tif before != nil {\n\t\tn, _ := strconv.Atoi(before.ResourceVersion)\n\t\tlease.ResourceVersion = strconv.Itoa(n + 1)\n\t}\n\tif kind"},
		{Name: "an update without a version is taken", File: "client.go", Run: inMemory,
			Old: "case lease.ResourceVersion == \"\":", New: "case false:"},
		{Name: "a second create replaces the first", File: "client.go", Run: inMemory,
			Old: "if _, ok := c.server.leases[c.key(lease.Name)]; ok {", New: "if false {"},
		{Name: "a Lease that is made again keeps its UID", File: "server.go", Run: inMemory,
			Old: "	s.born++\n", New: "	s.born = 1\n"},
		{Name: "an update that changes nothing makes a version", File: "client.go", Run: inMemory,
			Old: "if found.Spec.RenewTime.Equal(next.Spec.RenewTime) && api", New: "if false && api"},
		{Name: "whatever is sent is stored", File: "client.go", Run: inMemory,
			Old: "	if len(errs) > 0 {", New: "	if len(errs) > 100 {"},
		{Name: "labels are added", File: "client.go", Run: inMemory,
			Old: "	next.ManagedFields = nil\n", New: "	next.ManagedFields = nil\n	maps.Copy(next.Labels, found.Labels)\n"},
		{Name: "a context that has ended is not looked at", File: "faults.go", Run: inMemory,
			Old: "if err := ctx.Err(); err != nil {", New: "if err := ctx.Err(); err != nil && c == nil {"},
		{Name: "a deletion deletes nothing", File: "server.go", Run: inMemory,
			Old: "		delete(s.leases, k)\n", New: "		s.leases[k] = before\n"},
	})
}

// TestBrokenKitIsCaught: clocks, watches and faults that are other than they should be.
func TestBrokenKitIsCaught(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "timers run while the machine sleeps", File: "clock.go", Run: "^TestTimersStandStill",
			Old: "		t.real.Stop()\n		t.left =", New: "		t.left ="},
		{Name: "a timer is early", File: "clock.go", Run: "^TestTimerFiresInItsTime$",
			Old: "time.Duration(float64(d)/c.rate) + rounding", New: "time.Duration(float64(d)/c.rate) + 0*rounding"},
		{Name: "time that was slept counts as waited", File: "clock.go", Run: "^TestTimersStandStill",
			Old: "t.left = max(0, time.Until(t.ends))", New: "t.left = 0"},
		{Name: "no watch expires", File: "watch.go", Run: "^Test(Dropped|Restore)",
			Old: "if from < s.dropped || from > s.version {", New: "if from < 0 {"},
		{Name: "a watch of the future waits for it", File: "watch.go", Run: "^TestRestore",
			Old: "if from < s.dropped || from > s.version {", New: "if from < s.dropped {"},
		{Name: "the one who ceases to match is modified", File: "watch.go", Run: "^TestWatchFollows",
			Old: "case now && before:", New: "case before:"},
		{Name: "a sleeping machine gets events", File: "watch.go", Run: "^TestRequestsOfASleeping",
			Old: "if over(w.client.running()) {", New: "if over(w.client.server.closed) {"},
		{Name: "a committed fault is not committed", File: "faults.go", Run: "^TestFaults",
			Old: "|| f.Committed {", New: "|| false {"},
		{Name: "a restore keeps what came after", File: "server.go", Run: "^TestRestore",
			Old: "s.version, s.history, s.leases = 1, nil, map[types.NamespacedName]*coordinationv1.Lease{}", New: "s.version, s.history = 1, nil"},
	})
}

// TestBrokenMembersFailTheSuite: TestIdentity finds what breaks the promise.
func TestBrokenMembersFailTheSuite(t *testing.T) {
	const suite = "^TestIdentityOnTheServerInMemory$"
	mutate.Sample(t, []mutate.Mutant{
		{Name: "the next holder does not wait", File: "../adopt.go", Run: suite,
			Old: "s.quiet >= s.liveness:", New: "s.quiet >= s.liveness/2:"},
		{Name: "an adoption keeps the holder of before", File: "../record.go", Run: suite,
			Old: "l.Spec.HolderIdentity = &c.holder\n", New: "if l.Spec.HolderIdentity == nil {\n\t\tl.Spec.HolderIdentity = &c.holder\n\t}\n"},
		{Name: "the holder of a conflict is not looked at", File: "../member_hold.go", Run: suite,
			Old: "\tcase holderOf(r.value) != t.epoch.Holder:\n\t\treturn Taken\n", New: ""},
		{Name: "a stop deletes whatever is there", File: "../member_request.go", Run: suite,
			Old: "Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion},", New: ""},
		{Name: "a Lease made anew under our holder is released", File: "../member_release.go", Run: suite,
			Old: "now.value.UID != t.epoch.UID || holderOf", New: "holderOf"},
		{Name: "nothing is released", File: "../member_release.go", Run: suite,
			Old: "if !held || m.spec.KeepOnStop || t.ahead() {", New: "if held {"},
		{Name: "the epoch does not grow", File: "../record.go", Run: suite,
			Old: "max(stored, version, own) + 1", New: "max(stored, own)"},
		{Name: "deletions without preconditions", File: "../collector.go", Run: suite,
			Old: "Preconditions: &metav1.Preconditions{UID: &p.Lease.UID, ResourceVersion: &p.Lease.ResourceVersion},", New: ""},
		{Name: "the collector waits for nothing", File: "../collector_report.go", Run: suite,
			Old: " && p.Quiet >= gcAfter", New: " && gcAfter > 0"},
		{Name: "a new holder is the old member", File: "../view_tracker.go", Run: suite,
			Old: "case holder != holderOf(old):", New: "case holder == \"\" && holder != holderOf(old):"},
		{Name: "the informer shows everything", File: "../informer.go", Run: suite,
			Old: "	return r.String(), nil\n", New: "	_ = r\n	return \"\", nil\n"},
	})
}
