// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/internal/resourceversion"
)

func testSpec() Spec {
	return Spec{
		Namespace: "ns", Name: "m", Component: "c", Host: "h", Timing: ControlPlane(),
		Fingerprint: Fingerprint{Host: "h", BootID: "boot"},
	}
}

// TestHostsOfAnyKind is R-ID-04: the label is set where it is legal and left out where it is not; the annotation always says the host.
func TestHostsOfAnyKind(t *testing.T) {
	for _, c := range []struct {
		host, annotation string
		label            bool
	}{
		{"h", "h", true},
		{strings.Repeat("h", 63), strings.Repeat("h", 63), true},
		{strings.Repeat("h", 64), strings.Repeat("h", 64), false},
		{strings.Repeat("h", 253), strings.Repeat("h", 253), false},
		{"Host_1.example", "Host_1.example", true},
		{"-h", "-h", false},
		{"Bücher", "Bücher", false},
		{"a\xffb", `"a\xffb"`, false},
		{"a\x00b", "a\x00b", false},
	} {
		s := testSpec()
		s.Host, s.Fingerprint.Host = c.host, c.host
		l := s.claimed(nil, claim{holder: "m_1", epoch: 0}, time.Now())
		if label, ok := l.Labels[HostLabel]; ok != c.label || ok && label != c.host {
			t.Errorf("R-ID-04: host %q: label %q, present %v, want %v", c.host, label, ok, c.label)
		}
		if got := l.Annotations[HostAnnotation]; got != c.annotation {
			t.Errorf("R-ID-04: host %q: annotation %q, want %q", c.host, got, c.annotation)
		}
		if f := l.Annotations[FingerprintAnnotation]; !utf8.ValidString(f) || fingerprintOf(l).Host != c.annotation {
			t.Errorf("R-ID-04: host %q: fingerprint %q", c.host, f)
		}
	}
}

// TestClaimWritesAll is R-ID-05 and R-ID-06: an acquisition writes all that is ours, on top of what it has read, and nothing else.
func TestClaimWritesAll(t *testing.T) {
	now := time.Unix(1000, 1500)
	s := testSpec()
	s.Labels, s.Annotations = map[string]string{"team": "a"}, map[string]string{"note": "n"}
	s.Owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}
	s.OmitManagedFields = true
	old := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: "m", Namespace: "ns", UID: "uid", ResourceVersion: "5",
			Labels: map[string]string{"theirs": "x", "team": "b", HostLabel: "old"}, Annotations: map[string]string{"theirs": "y", EpochAnnotation: "1"},
			OwnerReferences: []metav1.OwnerReference{{Name: "old"}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("m_0"), LeaseTransitions: ptr.To[int32](4), LeaseDurationSeconds: ptr.To[int32](1), PreferredHolder: ptr.To("p"),
		},
	}
	before := old.DeepCopy()
	got := s.claimed(old, claim{holder: "m_1", epoch: 9, lock: testLock}, now)
	at := metav1.NewMicroTime(time.Unix(1000, 1000))
	want := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: "m", Namespace: "ns", UID: "uid", ResourceVersion: "5",
			Labels: map[string]string{"theirs": "x", "team": "a", HostLabel: "h", ComponentLabel: "c"},
			Annotations: map[string]string{
				"theirs": "y", "note": "n", EpochAnnotation: "9", HostAnnotation: "h", lockFileAnnotation: testLock,
				FingerprintAnnotation: `{"host":"h","bootID":"boot"}`,
			},
			OwnerReferences: []metav1.OwnerReference{*s.Owner}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("m_1"), LeaseTransitions: ptr.To[int32](5), LeaseDurationSeconds: ptr.To[int32](3600), PreferredHolder: ptr.To("p"),
			AcquireTime: &at, RenewTime: &at,
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("claimed gives\n%v, want\n%v", got, want)
	}
	if !reflect.DeepEqual(old, before) {
		t.Error("the Lease that was read is changed")
	}
	if again := s.claimed(got, claim{holder: "m_1", epoch: 9}, now); *again.Spec.LeaseTransitions != 5 {
		t.Error("a claim of what is ours already counts as a transition")
	}
	s.Host, s.Owner = "-", nil
	next := s.claimed(got, claim{holder: "m_2", epoch: 10}, now)
	if _, ok := next.Labels[HostLabel]; ok || next.Annotations[lockFileAnnotation] != "" || len(next.OwnerReferences) != 1 {
		t.Errorf("what is no longer so stays: %v", next.ObjectMeta)
	}
}

// TestClaimOfMalformedLeases: absent, negative and endless fields are replaced by what the server takes.
func TestClaimOfMalformedLeases(t *testing.T) {
	for in, want := range map[int32]int32{-5: 1, 0: 1, math.MaxInt32: math.MaxInt32} {
		l := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			LeaseTransitions: &in, LeaseDurationSeconds: ptr.To[int32](-1), HolderIdentity: ptr.To(""),
		}}
		got := testSpec().claimed(l, claim{holder: "m_1", epoch: 1}, time.Now())
		if *got.Spec.LeaseTransitions != want || *got.Spec.LeaseDurationSeconds != 3600 {
			t.Errorf("transitions %d become %d, want %d; duration %d, want 3600", in, *got.Spec.LeaseTransitions, want, *got.Spec.LeaseDurationSeconds)
		}
	}
	if got := testSpec().claimed(&coordinationv1.Lease{}, claim{holder: "m_1", epoch: 1}, time.Now()); *got.Spec.LeaseTransitions != 1 {
		t.Errorf("no transitions become %d, want 1", *got.Spec.LeaseTransitions)
	}
}

// TestRenewalChangesTheTimeAlone: and it always does, since the server makes no version of a write that changes nothing.
func TestRenewalChangesTheTimeAlone(t *testing.T) {
	now := time.Unix(1000, 0)
	s := testSpec()
	l := s.claimed(nil, claim{holder: "m_1", epoch: 9}, now)
	before := l.DeepCopy()
	same := s.renewed(l, 9, now)
	if same.Spec.RenewTime.Equal(l.Spec.RenewTime) {
		t.Error("with a clock that stands still a renewal changes nothing")
	}
	later := s.renewed(l, 9, now.Add(time.Minute))
	want := before.DeepCopy()
	want.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now.Add(time.Minute)))
	if !reflect.DeepEqual(later, want) || !reflect.DeepEqual(l, before) {
		t.Errorf("renewed gives %v, want %v; and the Lease before as it was", later, want)
	}
	for _, annotations := range []map[string]string{nil, {"theirs": "x"}, {EpochAnnotation: "3"}} {
		l.Annotations = annotations
		if next := s.renewed(l, 9, now); next.Annotations[EpochAnnotation] != "9" || next.Annotations["theirs"] != annotations["theirs"] {
			t.Errorf("annotations %v become %v, want epoch 9 in them", annotations, next.Annotations)
		}
		if annotations != nil && annotations[EpochAnnotation] == "9" {
			t.Error("the Lease before is changed")
		}
	}
}

func TestWhatCannotBeReadIsIgnored(t *testing.T) {
	for in, want := range map[string]uint64{
		"": 0, "7": 7, "-1": 0, "x": 0, "1e3": 0, "4611686018427387903": 1<<62 - 1, "4611686018427387904": 0, "9223372036854775807": 0, "18446744073709551615": 0,
	} {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{EpochAnnotation: in}}}
		if got := epochOf(l); got != want {
			t.Errorf("epoch %q is read as %d, want %d", in, got, want)
		}
	}
	for _, in := range []string{"", "{", "[]", `{"bootID":5}`, "null"} {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{FingerprintAnnotation: in}}}
		if got := fingerprintOf(l); got != (Fingerprint{}) {
			t.Errorf("fingerprint %q is read as %v, want none", in, got)
		}
	}
}

// TestVersionsThatAreNoNumbers are told by a typed error.
func TestVersionsThatAreNoNumbers(t *testing.T) {
	for _, version := range []string{"", "0", "07", "x1", "-1", "99999999999999999999"} {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "ns", ResourceVersion: version}}
		_, err := versionOf(l)
		var malformed resourceversion.InvalidError
		if !errors.As(err, &malformed) && !errors.Is(err, strconv.ErrRange) || !strings.Contains(err.Error(), fmt.Sprintf("%q", version)) {
			t.Errorf("the version %q gives %v, want an error that names it", version, err)
		}
	}
}

// TestEpochsGrow is invariant I2: whatever becomes of a Lease (edits, adoptions, deletions, and a move to a server whose versions
// start anew, with the Lease as it was) each hold has a greater number than all before. Each hold writes its number at its first
// renewal, or has ended before.
func TestEpochsGrow(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(1, seed))
		version, last, own := uint64(r.IntN(5)+1), uint64(0), uint64(0)
		stored, exists, ops := uint64(0), false, []string{}
		for range 30 {
			version += uint64(r.IntN(3)) // writes to other objects
			var number uint64
			switch op := r.IntN(5); {
			case !exists:
				version++
				number, stored, exists = createdEpoch(version, own), 0, true
				if own > 0 {
					stored = own + 1
				}
				ops = append(ops, "create")
			case op == 0 && last <= version: // a deletion forgets the annotation: it is safe as soon as the versions are past it
				version++
				exists = false
				ops = append(ops, "delete")
				continue
			case op == 1 && stored == last: // what is in the Lease is all that a new server gets to know
				version = uint64(r.IntN(5) + 1)
				ops = append(ops, "restore")
				continue
			case op == 2:
				version++
				stored = last
				ops = append(ops, "renew")
				continue
			default:
				number = adoptedEpoch(stored, version, own)
				version++
				stored = number
				ops = append(ops, "adopt")
			}
			if number <= last {
				t.Fatalf("seed %d: epoch %d after %d; %v", seed, number, last, ops)
			}
			last, own = number, uint64(0)
			if r.IntN(2) == 0 {
				own = last // the same process goes on, or another one that knows nothing
			}
		}
	}
}
