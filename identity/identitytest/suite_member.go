// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"errors"
	"path/filepath"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/identity"
)

// workFindsItsLease is R-ID-19, R-ID-05 and R-ID-20: when work begins, its Lease is stored, and a selector finds those of members alone.
func (s *suite) workFindsItsLease() {
	if _, err := s.admin.Create(s.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "leader"}}, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	holders := map[string]bool{}
	for _, kind := range []string{"agent", "controller", "probe"} {
		name := identity.Name("p", kind, "host")
		e := s.start(name, "host", func(spec *identity.Spec) { spec.Component = kind }).begins()
		l := s.lease(name)
		holders[e.Holder] = true
		if ptr.Deref(l.Spec.HolderIdentity, "") != e.Holder || l.UID != e.UID || e.Number == 0 {
			s.Errorf("R-ID-19: work has %v, the Lease is %v", e, l)
		}
		if l.Labels[identity.HostLabel] != "host" || l.Annotations[identity.HostAnnotation] != "host" {
			s.Errorf("R-ID-05: labels %v, annotations %v", l.Labels, l.Annotations)
		}
		s.knowsItsEpoch(name, e)
		s.wantSelected(identity.ComponentLabel+"="+kind, 1)
	}
	s.wantSelected(identity.ComponentLabel, 3)
	if len(holders) != 3 {
		s.Errorf("R-ID-20: %d holders, want 3", len(holders))
	}
}

// wantSelected demands that a selector finds so many Leases.
func (s *suite) wantSelected(selector string, want int) {
	s.Helper()
	all, err := s.admin.List(s.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil || len(all.Items) != want {
		s.Errorf("R-ID-05, R-ID-20: the selector %q finds %d Leases (%v), want %d", selector, len(all.Items), err, want)
	}
}

// knowsItsEpoch waits until the epoch stands in the Lease.
func (s *suite) knowsItsEpoch(name string, e identity.Epoch) {
	s.Helper()
	s.eventually(func() string {
		if got := s.lease(name).Annotations[identity.EpochAnnotation]; got != strconv.FormatUint(e.Number, 10) {
			return "the epoch in the Lease is " + strconv.Quote(got)
		}
		return ""
	})
}

// records is R-ID-19: when work begins, at the first hold and after a loss, and writes a record with its holder, the Lease with that holder is there.
func (s *suite) records() {
	written := 0
	p := s.startWith(func(e identity.Epoch) {
		l, err := s.admin.Get(s.Context(), "a", metav1.GetOptions{})
		if err != nil || ptr.Deref(l.Spec.HolderIdentity, "") != e.Holder || l.UID != e.UID {
			s.Errorf("R-ID-19: work begins with %v; the Lease is %v (%v)", e, l, err)
		}
		written++
		record := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "record-" + strconv.Itoa(written)}}
		record.Spec.HolderIdentity = &e.Holder
		if _, err := s.admin.Create(s.Context(), record, metav1.CreateOptions{}); err != nil {
			s.Error(err)
		}
	}, "a", "host")
	first := p.begins()
	s.change(s.admin, "a", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("") })
	second := p.begins()
	p.stop()
	for name, e := range map[string]identity.Epoch{"record-1": first, "record-2": second} {
		if got := ptr.Deref(s.lease(name).Spec.HolderIdentity, ""); got != e.Holder {
			s.Errorf("R-ID-19: %s has the holder %q, want %q", name, got, e.Holder)
		}
	}
}

// restarts is R-ID-06 and R-ID-07: twenty processes, each killed, have one Lease with one UID, whose values show that it was another one each
// time. The lock of the host makes it quick.
func (s *suite) restarts() {
	lock := filepath.Join(s.TempDir(), "lock")
	locked := func(spec *identity.Spec) { quick(spec); spec.LockFile = lock }
	p := s.start("a", "host", locked)
	last, before := p.begins(), s.lease("a")
	first := before.UID
	for i := range int32(20) {
		p.kill()
		p = s.start("a", "host", locked)
		e, l := p.begins(), s.lease("a")
		if l.UID != first || e.UID != first {
			s.Fatalf("R-ID-07: after restart %d the Lease has UID %q, want %q", i+1, l.UID, first)
		}
		if *l.Spec.HolderIdentity == last.Holder || *l.Spec.LeaseTransitions != i+1 || !before.Spec.AcquireTime.Before(l.Spec.AcquireTime) ||
			e.Number <= last.Number {
			s.Fatalf("R-ID-06: restart %d has epoch %v after %v; the Lease was %v, is %v", i+1, e, last, before.Spec, l.Spec)
		}
		last, before = e, l
	}
	all, err := s.admin.List(s.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) != 1 {
		s.Errorf("R-ID-07: there are %d Leases (%v), want 1", len(all.Items), err)
	}
}

// succession: without a lock the next holder waits until the one before can not hold on any more.
func (s *suite) succession() {
	p := s.start("a", "one", quick)
	e := p.begins()
	last := p.kill()
	next := s.start("a", "two").begins()
	if after := time.Since(last); after < suiteLiveness {
		s.Errorf("the next holder has begun %v after the last renewal, want %v or more", after, suiteLiveness)
	}
	if next.UID != e.UID || next.Number <= e.Number {
		s.Errorf("the next holder has %v after %v, want the same Lease and a greater number", next, e)
	}
}

// duplicate: a second process is told of both, and leaves the first alone.
func (s *suite) duplicate() {
	first := s.start("a", "one")
	e := first.begins()
	failing, waiting := s.start("a", "two"), s.start("a", "three", waits)
	err := <-failing.ended
	var dup *identity.DuplicateError
	if !errors.As(err, &dup) || dup.Theirs.Host != "one" || dup.Ours.Host != "two" || dup.Holder != e.Holder {
		s.Errorf("the second got %v, want a DuplicateError that names one and two", err)
	}
	if dup := waiting.seesDuplicate(); dup.Theirs.Host != "one" || dup.Ours.Host != "three" {
		s.Errorf("the third got %v, want a DuplicateError that names one and three", dup)
	}
	if now, held := first.member.Epoch(); !held || now != e || *s.lease("a").Spec.HolderIdentity != e.Holder {
		s.Errorf("the first holds: %t, %v; want %v as before", held, now, e)
	}
}

// release is R-ID-16: the Lease is gone after a stop, also where somebody has edited it since, and the next one does not wait.
func (s *suite) release() {
	first := s.start("a", "one")
	e := first.begins()
	waiting := s.start("a", "two", waits)
	_ = waiting.seesDuplicate()
	s.change(s.admin, "a", func(l *coordinationv1.Lease) { l.Labels["edited"] = "yes" })
	first.stop()
	if next := waiting.begins(); next.UID == e.UID || next.Number <= e.Number {
		s.Errorf("the next has %v after %v, want a new Lease and a greater number", next, e)
	}
	waiting.stop()
	s.wantThere(s.admin, "a", false)
}

// deleted: a Lease that somebody deletes is lost at the next renewal. The member acquires it again, with an epoch that is greater.
func (s *suite) deleted() {
	p := s.start("a", "one")
	e := p.begins()
	if err := s.admin.Delete(s.Context(), "a", metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	if next := p.begins(); next.UID == e.UID || next.Number <= e.Number || next.Holder == e.Holder {
		s.Errorf("after the deletion it holds %v, before %v; want another Lease, a greater number, another holder", next, e)
	}
}

// stolen is R-ID-16: a stop after another took the Lease, or made it anew, that is not noticed yet. The deletion of the version that was written is
// sent, the server refuses it, and what is another's stays.
func (s *suite) stolen() {
	for name, steal := range map[string]func(l *coordinationv1.Lease){
		"taken": func(*coordinationv1.Lease) {
			s.change(s.admin, "taken", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("taken_thief") })
		},
		"anew": func(l *coordinationv1.Lease) { // from a backup, under the same holder
			l.ObjectMeta = metav1.ObjectMeta{Name: l.Name, Labels: l.Labels, Annotations: l.Annotations}
			err := s.admin.Delete(s.Context(), "anew", metav1.DeleteOptions{})
			if err == nil {
				_, err = s.admin.Create(s.Context(), l, metav1.CreateOptions{})
			}
			if err != nil {
				s.Fatal(err)
			}
		},
	} {
		p := s.start(name, "one", slow)
		s.knowsItsEpoch(name, p.begins())
		steal(s.lease(name))
		before := s.lease(name)
		p.stop()
		if p.wire.deletions.Load() == 0 {
			s.Errorf("R-ID-16: %q: no deletion was sent, which would have shown whether the server refuses it", name)
		}
		after, err := s.admin.Get(s.Context(), name, metav1.GetOptions{})
		if err != nil || after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
			s.Errorf("R-ID-16: %q: after the stop the Lease is %v (%v), want it as the other has written it: %v", name, after, err, before)
		}
	}
}

// taken is R-ID-16: a foreign holder is neither renewed nor deleted.
func (s *suite) taken() {
	p := s.start("a", "one", waits)
	p.begins()
	s.change(s.admin, "a", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("a_thief") })
	s.eventually(func() string {
		if status := p.member.Status(); status.Phase != identity.Watching {
			return "the phase is " + string(status.Phase) + ", want the thief watched"
		}
		return ""
	})
	if p.member.Healthy() == nil {
		s.Error("healthy without the Lease")
	}
	p.stop()
	if got := *s.lease("a").Spec.HolderIdentity; got != "a_thief" {
		s.Errorf("after the stop the holder is %q, want the thief", got)
	}
}
