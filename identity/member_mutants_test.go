// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a member that takes over what is not its, or writes what is wrong.
func TestAdoptMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a foreign holder is adopted at sight", File: "adopt.go", Run: "TestDuplicateIsTold|TestNobodyAliveIsCollected",
			Old: "s.quiet >= s.liveness:", New: "s.quiet >= 0:"},
		{Name: "the lock is not needed", File: "adopt.go", Run: "TestJudge",
			Old: "s.lock != \"\" && s.lease", New: "s.lease"},
		{Name: "the lock proves the death of a holder that had none", File: "adopt.go", Run: "TestJudge",
			Old: "s.lease.Annotations[LockFileAnnotation] == s.lock &&", New: "true &&"},
		{Name: "any file at the path will do", File: "lockfile_unix.go", Run: "TestLockOfAnotherFile",
			Old: "return fmt.Sprintf(\"%d:%d\", st.Dev, st.Ino), nil", New: "return f.Name(), nil"},
		{Name: "the lock proves it on any machine", File: "adopt.go", Run: "TestJudge",
			Old: "s.fingerprint.SameBoot(fingerprintOf(s.lease))", New: "true"},
		{Name: "an edit is a sign of life", File: "adopt.go", Run: "TestEditsAreNoSignOfLife",
			Old: "|| !w.renewTime.Equal(&next.renewTime)", New: "|| true"},
		{Name: "a new version does not begin the count anew", File: "adopt.go", Run: "TestWatch|TestEditsAreNoSignOfLife",
			Old: "since: answered, alive", New: "since: w.since, alive"},
		{Name: "a living holder is watched for ever", File: "adopt.go", Run: "TestDuplicateIsTold",
			Old: "\t\treturn duplicate\n", New: "\t\treturn keepWatching\n"},
		{Name: "a machine ID is enough for the same boot", File: "fingerprint.go", Run: "TestSameBoot",
			Old: "f.BootID != \"\" && f.BootID == other.BootID &&", New: "f.BootID == other.BootID &&"},
		{Name: "the epoch is not more than the annotation", File: "record.go", Run: "TestEpochsGrow",
			Old: "max(stored, version, own) + 1", New: "max(version, own) + 1"},
		{Name: "the epoch is not more than the version", File: "record.go", Run: "TestEpochsGrow",
			Old: "max(stored, version, own) + 1", New: "max(stored, own) + 1"},
		{Name: "the epoch does not grow", File: "record.go", Run: "TestEpochsGrow",
			Old: "max(stored, version, own) + 1", New: "max(stored, version, own)"},
		{Name: "an epoch that no other can follow is believed", File: "record.go", Run: "TestWhatCannotBeRead|TestForgedEpochs",
			Old: "strconv.ParseUint(l.Annotations[EpochAnnotation], 10, epochBits)", New: "strconv.ParseUint(l.Annotations[EpochAnnotation], 10, 63)"},
		{Name: "an epoch is given out that is not believed", File: "member_acquire.go", Run: "TestForgedEpochs",
			Old: "if number >= 1<<epochBits {", New: "if number == 0 {"},
		{Name: "a clock that stands still renews nothing", File: "record.go", Run: "TestRenewalChanges",
			Old: "at = metav1.NewMicroTime(at.Add(time.Microsecond))", New: "at = metav1.NewMicroTime(at.Time)"},
		{Name: "an illegal label is written", File: "record.go", Run: "TestHostsOfAnyKind",
			Old: "len(validation.IsValidLabelValue(s.Host)) == 0", New: "len(validation.IsValidLabelValue(s.Host)) >= 0"},
		{Name: "an adoption keeps the holder of before", File: "record.go", Run: "TestRestartTakes",
			Old: "l.Spec.HolderIdentity = &c.holder\n", New: "if l.Spec.HolderIdentity == nil {\n\t\tl.Spec.HolderIdentity = &c.holder\n\t}\n"},
		{Name: "a read begins the back-off anew", File: "member_acquire.go", Run: "TestWritesThatFail",
			Old: "\ta.m.know(func(k *known) { k.lease = r.value })", New: "\ta.retry = backoff{}\n\ta.m.know(func(k *known) { k.lease = r.value })"},
		{Name: "the Lease need not go with the Node", File: "validate.go", Run: "TestSpecHasBounds",
			Old: "(s.Owner == nil || string(s.Owner.UID) != s.Fingerprint.NodeUID)", New: "s.Node == \"\""},
		{Name: "another Node of the name will do", File: "member_acquire.go", Run: "TestNodeIsGone",
			Old: "case string(r.value.UID) != want:", New: "case want == \"\":"},
		{Name: "the lock of a file that is gone is enough", File: "lockfile.go", Run: "TestLock",
			Old: "return nil, dup\n", New: "return func() {}, nil\n"},
		{Name: "host and component run together", File: "spec.go", Run: "TestName",
			Old: "\t\tb = binary.BigEndian.AppendUint16(b, uint16(len(s)))\n", New: "\t\t_ = binary.BigEndian\n"},
	})
}

// The suite catches a member that holds for too long, or not for long enough.
func TestHoldMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "the hold counts from the answer", File: "member_hold.go", Run: "TestHoldCountsFromTheSending",
			Old: "t.lease, t.good, t.retry = r.value, r.sent, backoff{}", New: "t.lease, t.good, t.retry = r.value, r.answered, backoff{}"},
		{Name: "the hold does not end", File: "member_hold.go", Run: "TestHoldEnds",
			Old: "\t\tif t.over() {\n\t\t\treturn Expired, nil\n\t\t}\n", New: ""},
		{Name: "the end of the hold is not seen while a request hangs", File: "member_hold.go", Run: "TestSuspendedMachine|TestHoldEnds",
			Old: "nap := min(time.Second, timing.Hold/10, t.good+timing.Hold-now)", New: "nap := min(time.Hour, 100*timing.Hold)"},
		{Name: "Epoch does not look at the clock", File: "member_status.go", Run: "TestSuspendedMachine",
			Old: "return k.held && now-k.good < t.Hold", New: "return k.held"},
		{Name: "a foreign holder is renewed", File: "member_hold.go", Run: "TestForeignHolder",
			Old: "\tcase holderOf(r.value) != t.epoch.Holder:\n\t\treturn Taken\n", New: ""},
		{Name: "another Lease of the name is taken for ours", File: "member_hold.go", Run: "TestForeignHolder",
			Old: "\tcase r.value.UID != t.epoch.UID:\n\t\treturn Deleted\n", New: ""},
		{Name: "a conflict is a loss", File: "member_hold.go", Run: "TestEditsOfOthersStay|TestOneFailure",
			Old: "\tcase absent(r.err):\n\t\treturn Deleted\n", New: "\tcase absent(r.err), apierrors.IsConflict(r.err):\n\t\treturn Deleted\n"},
		{Name: "what others have removed stays away", File: "member_hold.go", Run: "TestEditsOfOthersStay",
			Old: "t.lease = t.m.spec.restored(r.value, claim{holder: t.epoch.Holder, epoch: t.epoch.Number, lock: t.m.locked})", New: "t.lease = r.value"},
		{Name: "a late renewal has no time for a second try", File: "member_request.go", Run: "TestRequestLimit|TestLateRenewals",
			Old: "(t.Hold-t.longest())/2", New: "(t.Hold-t.Renew)/2"},
		{Name: "a hold of less than two late renewals is legal", File: "validate.go", Run: "TestTimingHasBounds",
			Old: "t.Hold/2 >= t.longest()", New: "t.Hold/2 >= t.Renew"},
		{Name: "the 404 of a gateway is believed", File: "member_request.go", Run: "TestOneFailure",
			Old: " && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)", New: " && metav1.CauseTypeUnexpectedServerResponse != \"\""},
		{Name: "no renewals while the work drains", File: "member_hold.go", Run: "TestLeaseIsKeptWhileWorkDrains",
			Old: "t.keep(context.WithoutCancel(ctx), returned)", New: "t.keep(ctx, returned)"},
		{Name: "the next hold does not wait for the work", File: "member_hold.go", Run: "TestWorkOfALostHold",
			Old: "\terr = <-returned\n", New: "\terr = context.Cause(working)\n"},
		{Name: "the error of work that fails after the loss is forgotten at the end", File: "member_hold.go", Run: "TestWorkThatFailsAfterALoss",
			Old: "\t\treturn true, err\n\t}\n\tif err != nil {", New: "\t\treturn true, nil\n\t}\n\tif err != nil {"},
		{Name: "the work does not learn of the loss", File: "member_hold.go", Run: "TestForeignHolder",
			Old: "t.epoch.Number, reason, ErrLost))", New: "t.epoch.Number, reason, ErrRunning))"},
		{Name: "a renewal asks before", File: "member_hold.go", Run: "TestAQuietHour",
			Old: "t.due = r.sent + t.m.spec.Timing.interval()", New: "t.due, t.reread = r.sent+t.m.spec.Timing.interval(), true"},
	})
}

// The suite catches a member that deletes what it should not.
func TestReleaseMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "whatever is there is deleted", File: "member_request.go", Run: "TestReleaseOfWhatHasChanged|TestReleaseDeletes",
			Old: "Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion},", New: ""},
		{Name: "the deletion has no version", File: "member_request.go", Run: "TestReleaseOfWhatHasChanged|TestReleaseDeletes",
			Old: "UID: &l.UID, ResourceVersion: &l.ResourceVersion}", New: "UID: &l.UID}"},
		{Name: "another holder's Lease is deleted after a conflict", File: "member_release.go", Run: "TestReleaseOfWhatHasChanged",
			Old: "now.value.UID != t.epoch.UID || holderOf(now.value) != t.epoch.Holder", New: "false"},
		{Name: "the release takes for ever", File: "member_release.go", Run: "TestReleaseIsBounded",
			Old: "context.WithTimeout(ctx, m.spec.Timing.Stop)", New: "context.WithTimeout(ctx, 100*m.spec.Timing.Stop)"},
		{Name: "what is not held is released", File: "member_release.go", Run: "TestNothingIsReleased",
			Old: "held := !t.over()", New: "held := true"},
		{Name: "work begins without an answer", File: "member_acquire.go", Run: "TestDependentRecordsComeSecond",
			Old: "\t\ta.unsure = true\n\t\treturn nil, a.failed(ctx, r.err), nil\n", New: "\t\tif r.value = want; r.value.ResourceVersion == \"\" {\n\t\t\tr.value.ResourceVersion = \"1\"\n\t\t}\n"},
		{Name: "what was got without an answer stays", File: "member_acquire.go", Run: "TestStopDuringAnAcquisition",
			Old: "\t\ta.unsure = true\n", New: ""},
		{Name: "what another got meanwhile is withdrawn", File: "member_release.go", Run: "TestStopDuringAnAcquisition",
			Old: " || holderOf(r.value) != a.holder {", New: " {\n\t\treturn\n\t}\n\tif a.holder = holderOf(r.value); a.holder == \"\" {"},
		{Name: "the Lease that alone knows the epoch is withdrawn", File: "member_release.go", Run: "TestStopDuringAnAcquisition",
			Old: "\tif !t.ahead() {\n", New: "\tif t != nil {\n"},
		{Name: "the Lease that alone knows the epoch is deleted", File: "member_release.go", Run: "TestLeaseThatKeeps",
			Old: " || t.ahead()", New: ""},
	})
}
