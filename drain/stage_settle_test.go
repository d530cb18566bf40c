// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// latecomer binds a pod of a workload to n1, as the scheduler does that has not seen the cordon.
func (s *stageTest) latecomer(name string) {
	owner := s.c.AddWorkload(draintest.Workload{Name: name, Replicas: 1, Scale: true})
	s.c.AddPod("default", name, "n1", draintest.OwnedBy(draintest.ReplicaSet, name, owner))
}

// A node is watched for the settle time before it counts as drained; a pod that comes meanwhile is evicted, and the time starts again.
func TestLatecomerStartsTheSettleTimeAgain(t *testing.T) {
	for _, settle := range []*time.Duration{nil, ptr.To(time.Minute)} {
		wait := ptr.Deref(settle, 5*time.Second)
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.web("web", 2, "n1")
			began := time.Now()
			r := s.request("n1", func(r *drain.Request) { r.Policy.Settle = settle })
			st := s.phase(r, time.Minute, drain.Settling)
			s.wants(st, drain.Settling, "SettleWindow", "")
			time.AfterFunc(wait-time.Second, func() { s.latecomer("late") })
			st = s.phase(r, 10*time.Minute, drain.Drained)
			if took := time.Since(began); took < 2*wait-time.Second || took > 2*wait+time.Second {
				t.Errorf("drain: got %s, want about %s after the latecomer left", took, wait)
			}
			if len(st.Evicted) != 3 || len(s.c.LivePods("n1")) != 0 {
				t.Errorf("got %s, want the latecomer evicted too", stageLine(st))
			}
		})
	}
}

// When the cache is behind, the server's own list is believed: the node is not drained before it is empty there.
func TestDrainedIsConfirmedWithTheServer(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		r := s.request("n1")
		s.phase(r, time.Minute, drain.Settling)
		s.c.DropWatch()
		s.latecomer("late")
		s.sleep(5 * time.Second)
		st := s.pass(r)
		s.wants(st, drain.Draining, "", "")
		if !strings.Contains(st.Message, "1 pods more") || len(s.c.Log(draintest.ListPods)) != 1 {
			t.Errorf("got %q after %d lists, want it told after 1", st.Message, len(s.c.Log(draintest.ListPods)))
		}
		s.sleep(5 * time.Second)
		s.pass(r)
		s.c.RestoreWatch()
		st = s.phase(r, time.Minute, drain.Drained)
		if len(st.Evicted) != 2 || len(s.c.LivePods("n1")) != 0 {
			t.Errorf("got %s, want the hidden pod evicted too", stageLine(st))
		}
	})
}

// A pass that cannot confirm is an error, and claims nothing.
func TestUnconfirmedIsNotDrained(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		r := s.request("n1", func(r *drain.Request) { r.Policy.Settle = ptr.To(time.Duration(0)) })
		s.c.Faults(draintest.On(draintest.ListPods, 1, draintest.Unavailable()))
		if st, after, err := s.d.ReconcileRequest(s.Context(), r); err == nil || st.Phase == drain.Drained || after <= 0 {
			t.Errorf("got %s, %s, %v, want an error and another try", stageLine(st), after, err)
		}
		s.phase(r, time.Minute, drain.Drained)
	})
}

// Drained is latched for its maintenance: pods that come later do not undo it, a caller that has kept the status needs neither the
// node nor its server, and another maintenance drains anew.
func TestDrainedIsLatched(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 2, "n1")
		r := s.request("n1")
		st := s.phase(r, time.Minute, drain.Drained)
		finished := time.Now()
		s.latecomer("late")
		s.sleep(time.Minute)
		s.restart()
		again := s.pass(r)
		s.wants(again, drain.Drained, "", drain.OutcomeDrained)
		if !again.Finished.Equal(finished) || again.Started.IsZero() || len(s.evictions()) != 2 {
			t.Errorf("got %s and %d evictions, want it finished at %s with 2", stageLine(again), len(s.evictions()), finished)
		}
		again = s.pass(s.request("n1", func(r *drain.Request) { r.Maintenance = "m2" }))
		if again.Phase != drain.Draining || len(s.evictions()) != 3 {
			t.Errorf("another maintenance: got %s, want a new drain that evicts the latecomer", stageLine(again))
		}
		s.c.DeleteNode("n1")
		s.c.Faults(draintest.Always(draintest.AnyWrite, draintest.Unavailable()))
		s.c.ClearLog()
		r.Last = &st
		s.wants(s.pass(r), drain.Drained, "", drain.OutcomeDrained)
		s.restart()
		s.wants(s.pass(r), drain.Drained, "", drain.OutcomeDrained)
		if calls := s.c.Log(); len(calls) != 0 {
			t.Errorf("requests without a server: got %v, want none", calls)
		}
	})
}

// A kept result is believed only for the maintenance, the holder and the Node that it is about.
func TestKeptResultOfSomethingElseIsNotBelieved(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		kept := drain.Status{Node: "n1", NodeUID: s.c.LiveNode("n1").UID, Holder: "test", Maintenance: "m1", Mode: drain.Drain, Phase: drain.Drained}
		for what, change := range map[string]func(*drain.Status){
			"maintenance": func(st *drain.Status) { st.Maintenance = "m0" },
			"holder":      func(st *drain.Status) { st.Holder = "other" },
			"node":        func(st *drain.Status) { st.NodeUID = "other" },
		} {
			last := kept
			change(&last)
			s.restart()
			if st := s.pass(s.request("n1", func(r *drain.Request) { r.Last = &last })); st.Phase == drain.Drained {
				t.Errorf("result of another %s: got it believed", what)
			}
		}
	})
}

// volumes has on n1 a pod "db" with a volume "pv" that stays attached, and a DaemonSet's pod with "kept".
func (s *stageTest) volumes() {
	db := s.c.AddWorkload(draintest.Workload{Name: "db", Replicas: 1, Scale: true})
	agent := s.c.AddWorkload(draintest.Workload{Kind: draintest.DaemonSet, Name: "agent", Scale: true})
	s.c.AddPod("default", "db", "n1", draintest.OwnedBy(draintest.ReplicaSet, "db", db), stageClaim("pv"))
	s.c.AddPod("default", "agent", "n1", draintest.OwnedBy(draintest.DaemonSet, "agent", agent), stageClaim("kept"))
	for _, pv := range []string{"pv", "kept"} {
		s.c.AddClaim(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pv},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: pv}})
		s.c.AddVolume(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pv}})
		s.c.AddAttachment(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: pv},
			Spec:   storagev1.VolumeAttachmentSpec{NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(pv)}},
			Status: storagev1.VolumeAttachmentStatus{Attached: true}})
	}
}

// Volumes of pods that have left are waited for, with the reason and whose they are; those of pods that stay are not.
func TestVolumesOfPodsThatLeftAreWaitedFor(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.volumes()
		uid := s.c.LivePod("default", "db").UID
		r := s.request("n1", func(r *drain.Request) { r.Policy.Volumes = true })
		end := time.Now().Add(time.Hour)
		st := s.until(r, 2*time.Hour, "time to pass", func(drain.Status) bool { return time.Now().After(end) })
		s.wants(st, drain.Settling, "VolumeAttached", "")
		want := drain.Attached{Volume: "pv", Pods: []drain.PodRef{{Namespace: "default", Name: "db", UID: uid}}}
		if len(st.Attached) != 1 || st.Attached[0].Volume != want.Volume || !slices.Equal(st.Attached[0].Pods, want.Pods) {
			t.Errorf("attached: got %+v, want %+v", st.Attached, want)
		}
		if len(s.c.Log(draintest.ListPods)) != 0 {
			t.Error("got the server asked before the volumes were gone")
		}
		time.AfterFunc(time.Minute, func() { s.c.RemoveAttachment("pv") })
		s.phase(r, time.Minute+time.Second, drain.Drained)
	})
}

// The wait for volumes has a deadline of its own, and there is none on a node that cannot detach them.
func TestVolumesAreNotWaitedForForEver(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*stageTest)
		limit time.Duration
		want  time.Duration
	}{
		"deadline":    {func(*stageTest) {}, 3 * time.Minute, 3 * time.Minute},
		"unreachable": {func(s *stageTest) { s.c.StopKubelet("n1"); s.sleep(time.Minute); s.c.Finish("default", "db") }, 0, 5 * time.Second},
		"not wanted":  {nil, 0, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, draintest.Options{}, nil, func(s *stageTest) {
				s.volumes()
				if c.spoil != nil {
					c.spoil(s)
				}
				began := time.Now()
				r := s.request("n1", func(r *drain.Request) { r.Policy.Volumes, r.Policy.VolumeDeadline = c.spoil != nil, c.limit })
				st := s.phase(r, time.Hour, drain.Drained)
				if took := time.Since(began); took != c.want {
					t.Errorf("drain: got %s, want %s", took, c.want)
				}
				s.wants(st, drain.Drained, "", drain.OutcomeDrained)
			})
		})
	}
}
