// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"math"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// testLock is the device and the inode of a file.
const testLock = "2049:131073"

func foreign(changes ...func(*coordinationv1.Lease)) *coordinationv1.Lease {
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "5", Annotations: map[string]string{
			FingerprintAnnotation: `{"bootID":"boot","machineID":"m"}`, lockFileAnnotation: testLock,
		}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("m_other"), RenewTime: ptr.To(metav1.NewMicroTime(time.Unix(1000, 0)))},
	}
	for _, change := range changes {
		change(l)
	}
	return l
}

// TestJudge is R-ID-07 and the rule of duplicates: who may take a Lease over, and when.
func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*sighting)
		want   verdict
	}{
		"a holder that is seen for the first time": {func(*sighting) {}, keepWatching},
		"no holder":               {func(s *sighting) { s.lease.Spec.HolderIdentity = ptr.To("") }, adopt},
		"nil holder":              {func(s *sighting) { s.lease.Spec.HolderIdentity = nil }, adopt},
		"ours":                    {func(s *sighting) { s.ours = true }, adopt},
		"ours, though edited":     {func(s *sighting) { s.ours, s.alive = true, true }, adopt},
		"quiet for long enough":   {func(s *sighting) { s.quiet = s.liveness }, adopt},
		"not quite":               {func(s *sighting) { s.quiet = s.liveness - 1 }, keepWatching},
		"alive":                   {func(s *sighting) { s.alive = true }, duplicate},
		"alive, and quiet since":  {func(s *sighting) { s.alive, s.quiet = true, s.liveness }, adopt},
		"gone by the lock":        {func(s *sighting) { s.lock = testLock }, adopt},
		"it had another lock":     {func(s *sighting) { s.lock = "2049:131074" }, keepWatching},
		"it had no lock":          {func(s *sighting) { s.lock = testLock; delete(s.lease.Annotations, lockFileAnnotation) }, keepWatching},
		"we have no lock, nor it": {func(s *sighting) { delete(s.lease.Annotations, lockFileAnnotation) }, keepWatching},
		"the lock on another boot": {func(s *sighting) {
			s.lock, s.fingerprint.BootID = testLock, "boot-2"
		}, keepWatching},
		"the lock on a machine with our boot ID": {func(s *sighting) {
			s.lock, s.fingerprint.MachineID = testLock, "m-2"
		}, keepWatching},
		"the lock, with a fingerprint that is garbage": {func(s *sighting) {
			s.lock, s.lease.Annotations[FingerprintAnnotation] = testLock, "?"
		}, keepWatching},
		"the lock, with no fingerprint on either side": {func(s *sighting) {
			s.lock, s.fingerprint = testLock, Fingerprint{}
			delete(s.lease.Annotations, FingerprintAnnotation)
		}, keepWatching},
	} {
		t.Run(name, func(t *testing.T) {
			s := sighting{lease: foreign(), fingerprint: Fingerprint{BootID: "boot", MachineID: "m", PodUID: "p"}, liveness: 40 * time.Second}
			c.change(&s)
			if got := judge(s); got != c.want {
				t.Errorf("judged %d, want %d", got, c.want)
			}
		})
	}
}

// TestTakeover has when a silent holder's Lease is taken, and the reason, by what stands in the Lease. A member that
// does not lead goes by its own Liveness.
func TestTakeover(t *testing.T) {
	const s, most = time.Second, maxHolderDuration
	for name, c := range map[string]struct {
		seconds        *int32
		liveness, want time.Duration
		duration       string // the reason before that of Liveness
	}{
		"no duration":       {nil, 15 * s, 15 * s, ""},
		"neither":           {nil, 0, 0, ""},
		"zero":              {ptr.To[int32](0), 15 * s, 15 * s, ""},
		"negative":          {ptr.To[int32](-60), 15 * s, 15 * s, ""},
		"the most negative": {ptr.To[int32](math.MinInt32), 15 * s, 15 * s, ""},
		"less":              {ptr.To[int32](14), 15 * s, 15 * s, ""},
		"equal":             {ptr.To[int32](15), 15 * s, 15 * s, ""},
		"more":              {ptr.To[int32](16), 15 * s, 16 * s, "16; "},
		"the cap":           {ptr.To[int32](600), 15 * s, most, "600; "},
		"more than the cap": {ptr.To[int32](601), 15 * s, most, "601, of which at most 10m0s count; "},
		"the most":          {ptr.To[int32](math.MaxInt32), 15 * s, most, "2147483647, of which at most 10m0s count; "},
		"a long Liveness":   {ptr.To[int32](3600), most + s, most + s, ""},
	} {
		l := foreign(func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = c.seconds })
		byLiveness := takeover{c.liveness, "the Liveness here is " + c.liveness.String()}
		want := takeover{c.want, byLiveness.reason}
		if c.duration != "" {
			want.reason = "the holder's leaseDurationSeconds is " + c.duration + want.reason
		}
		leader := &Member{spec: Spec{Timing: Timing{Liveness: c.liveness}}, waitsForDuration: true}
		if got := leader.takeoverOf(l); got != want {
			t.Errorf("%s: a leader has %+v, want %+v", name, got, want)
		}
		member := &Member{spec: leader.spec}
		if got := member.takeoverOf(l); got != byLiveness {
			t.Errorf("%s: a member has %+v, want %+v", name, got, byLiveness)
		}
	}
}

func TestSameBoot(t *testing.T) {
	full := Fingerprint{Host: "h", NodeUID: "n", BootID: "b", MachineID: "m", PodUID: "p"}
	for name, c := range map[string]struct {
		change func(*Fingerprint)
		want   bool
	}{
		"equal":           {func(*Fingerprint) {}, true},
		"another host":    {func(f *Fingerprint) { f.Host = "x" }, true},
		"another pod":     {func(f *Fingerprint) { f.PodUID = "x" }, true},
		"no machine":      {func(f *Fingerprint) { f.MachineID = "" }, true},
		"another machine": {func(f *Fingerprint) { f.MachineID = "x" }, false},
		"another node":    {func(f *Fingerprint) { f.NodeUID = "x" }, false},
		"another boot":    {func(f *Fingerprint) { f.BootID = "x" }, false},
		"no boot":         {func(f *Fingerprint) { f.BootID = "" }, false},
	} {
		other := full
		c.change(&other)
		if full.SameBoot(other) != c.want || other.SameBoot(full) != c.want {
			t.Errorf("%s: SameBoot is %v and %v, want %v", name, full.SameBoot(other), other.SameBoot(full), c.want)
		}
	}
	if (Fingerprint{MachineID: "m"}).SameBoot(Fingerprint{MachineID: "m"}) {
		t.Error("two without a boot ID are of the same boot")
	}
}

// TestWatch counts how long a version has stood, and tells a sign of life from an edit.
func TestWatch(t *testing.T) {
	s := time.Second
	w := watch{}.saw(foreign(), 10*s)
	if w.alive || w.quiet(10*s) != 0 || w.quiet(30*s) != 20*s || w.quiet(9*s) != 0 {
		t.Errorf("after the first reading: %+v", w)
	}
	if again := w.saw(foreign(), 25*s); again != w {
		t.Errorf("the same version changes the watch: %+v", again)
	}
	for name, c := range map[string]struct {
		change func(*coordinationv1.Lease)
		alive  bool
	}{
		"an edit":               {func(*coordinationv1.Lease) {}, false},
		"a renewal":             {func(l *coordinationv1.Lease) { l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Unix(1010, 0))) }, true},
		"a renewal to the past": {func(l *coordinationv1.Lease) { l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Unix(1, 0))) }, true},
		"no time any more":      {func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil }, true},
		"another holder":        {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("m_third") }, true},
		"another Lease":         {func(l *coordinationv1.Lease) { l.UID = types.UID("u2") }, true},
	} {
		next := w.saw(foreign(c.change, func(l *coordinationv1.Lease) { l.ResourceVersion = "6" }), 30*s)
		if next.alive != c.alive || next.quiet(31*s) != s {
			t.Errorf("%s: alive %v, want %v; quiet for %s, want 1s", name, next.alive, c.alive, next.quiet(31*s))
		}
		if last := next.saw(foreign(func(l *coordinationv1.Lease) { l.ResourceVersion = "7" }), 40*s); c.alive && !last.alive {
			t.Errorf("%s: the sign of life is forgotten", name)
		}
	}
}
