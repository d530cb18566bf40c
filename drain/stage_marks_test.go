// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// Names that go into the mark have to come back from it as they went: one that JSON cannot keep is refused, without a request.
func TestNamesThatAMarkCannotKeepAreRefused(t *testing.T) {
	for field, change := range map[string]func(*drain.Request){
		"holder":      func(r *drain.Request) { r.Holder = "a\xff" },
		"maintenance": func(r *drain.Request) { r.Maintenance = "\xc3(" },
	} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			unnamed := s.request("n1", func(r *drain.Request) { r.Maintenance = "" })
			wantErrors(t, unnamed.Validate(), "maintenance")
			r := s.request("n1", change)
			wantErrors(t, r.Validate(), field)
			wantErrors(t, drain.Set{Request: r, Groups: [][]string{{"n1"}}}.Validate(), field)
			if _, _, err := s.d.ReconcileRequest(s.Context(), r); err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("pass: got %v, want an error about the %s", err, field)
			}
			if calls := s.c.Log(); len(calls) != 0 {
				t.Errorf("requests: got %v, want none", calls)
			}
		})
	}
}

// A markStripper is a server with an admission webhook that takes annotations off which it does not know.
type markStripper struct{ drain.Client }

// PatchNode implements [drain.Client].
func (c markStripper) PatchNode(ctx context.Context, name string, patch []byte, status bool) (*corev1.Node, error) {
	var p map[string]any
	if err := json.Unmarshal(patch, &p); err != nil {
		return nil, err
	}
	p["metadata"].(map[string]any)["annotations"] = map[string]any{drain.MarkAnnotation: nil}
	patch, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return c.Client.PatchNode(ctx, name, patch, status)
}

// R-DR-09: a server that does not keep the mark is told, by the annotation's name; without the mark nobody would know of the cordon, so
// the node is left as it was found, and no pod is touched.
func TestServerThatDropsTheMarkKeepsNoCordonOfOurs(t *testing.T) {
	for _, mode := range []drain.Mode{drain.Cordon, drain.Drain, drain.Hold} {
		for _, found := range []bool{false, true} {
			strips := func(o *drain.Options) { o.Client = markStripper{o.Client} }
			stage(t, draintest.Options{}, strips, func(s *stageTest) {
				s.web("web", 2, "n1")
				s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = found })
				r := s.request("n1", func(r *drain.Request) { r.Mode, r.HoldUntil = mode, time.Now().Add(time.Hour) })
				for range 3 {
					st, after, err := s.d.ReconcileRequest(s.Context(), r)
					if err == nil || !strings.Contains(err.Error(), drain.MarkAnnotation) || !strings.Contains(err.Error(), "n1") {
						t.Errorf("%s: got %s, %v, want an error that names the node and the annotation", mode, stageLine(st), err)
					}
					if got := s.c.LiveNode("n1").Spec.Unschedulable; got != found {
						t.Errorf("%s: got the node cordoned %v, want %v as it was found", mode, got, found)
					}
					s.sleep(max(after, time.Second))
				}
				if calls := s.c.Log(draintest.Evict, draintest.Delete, draintest.Renew); len(calls) != 0 {
					t.Errorf("%s: got %v, want nothing but the node touched", mode, calls)
				}
			})
		}
	}
}

// R-DR-09: the same where the cordon can't be taken off at once: it is not taken for one that was found, and goes when the server lets it.
func TestCordonWithoutItsMarkIsTakenOffLater(t *testing.T) {
	for _, release := range []bool{false, true} {
		strips := func(o *drain.Options) { o.Client = markStripper{o.Client} }
		stage(t, draintest.Options{}, strips, func(s *stageTest) {
			fault := draintest.On(draintest.PatchNode, 2, draintest.Unavailable())
			fault.Times = 3
			s.c.Faults(fault)
			r := s.request("n1")
			for range 3 {
				if _, _, err := s.d.ReconcileRequest(s.Context(), r); err == nil {
					t.Error("got a pass, want an error")
				}
				s.sleep(10 * time.Second)
			}
			if !s.c.LiveNode("n1").Spec.Unschedulable {
				t.Fatal("got the node schedulable, want the server to have refused that so far")
			}
			if release {
				r.Mode = drain.Release
			}
			if _, _, err := s.d.ReconcileRequest(s.Context(), r); (err == nil) != release {
				t.Errorf("release %v: got %v", release, err)
			}
			s.sleep(time.Second)
			s.clean("n1")
		})
	}
}

// R-DR-09: a mark that somebody removes while the cordon stands is written again with what the node was before, not with the cordon as found:
// the release gives back that.
func TestMarkThatIsRemovedIsWrittenAgainAsItWas(t *testing.T) {
	for _, mode := range []drain.Mode{drain.Cordon, drain.Drain, drain.Hold} {
		for _, before := range []bool{false, true} {
			stage(t, draintest.Options{}, nil, func(s *stageTest) {
				s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = before })
				s.stuck()
				r := s.request("n1", func(r *drain.Request) { r.Mode, r.HoldUntil = mode, time.Now().Add(time.Hour) })
				s.pass(r)
				s.sleep(10 * time.Second)
				s.pass(r)
				s.c.UpdateNode("n1", func(n *corev1.Node) { delete(n.Annotations, drain.MarkAnnotation) })
				s.sleep(time.Second)
				s.pass(r)
				mark := s.c.LiveNode("n1").Annotations[drain.MarkAnnotation]
				if want := fmt.Sprintf(`"unschedulable":%v`, before); !strings.Contains(mark, want) {
					t.Errorf("%s: got the mark %q, want it again with %s", mode, mark, want)
				}
				r.Mode = drain.Release
				s.phase(r, time.Minute, drain.Released)
				if got := s.c.LiveNode("n1").Spec.Unschedulable; got != before {
					t.Errorf("%s: got the node cordoned %v after the release, want %v as found", mode, got, before)
				}
			})
		}
	}
}

// R-DR-09: a cordon that somebody else sets after the node was given back is theirs.
func TestCordonAfterAReleaseByOthersIsTheirs(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		r := s.request("n1")
		s.pass(r)
		s.sleep(time.Second)
		s.c.UpdateNode("n1", func(n *corev1.Node) {
			delete(n.Annotations, drain.MarkAnnotation)
			n.Spec.Unschedulable = false
		})
		s.sleep(time.Second)
		r.Policy.RequireHealthy = true
		s.c.SetReady("default", s.c.LivePods("n1")[0].Name, false)
		s.sleep(time.Second)
		s.wants(s.pass(r), drain.Pending, "PodUnhealthy", "")
		s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		s.c.SetReady("default", s.c.LivePods("n1")[0].Name, true)
		s.sleep(time.Second)
		s.pass(r)
		r.Mode = drain.Release
		s.phase(r, time.Minute, drain.Released)
		if !s.c.LiveNode("n1").Spec.Unschedulable {
			t.Error("got the node schedulable after the release, want the cordon of somebody else to stay")
		}
	})
}

// markDamage puts a mark on n1 that cannot be read.
func (s *stageTest) markDamage() {
	s.c.UpdateNode("n1", func(n *corev1.Node) { n.Annotations = map[string]string{drain.MarkAnnotation: "oops"} })
}

// markDamaged fails the test unless n1 has ended because of its mark and has been left alone.
func (s *stageTest) markDamaged(st drain.Status) {
	s.Helper()
	if st.Node != "n1" || st.Phase != drain.Failed || st.Reason != "MarkUnreadable" || st.Message == "" {
		s.Errorf("node n1: got %s, want it Failed with reason %s and a message", stageLine(st), "MarkUnreadable")
	}
	for _, c := range s.c.Log() {
		if c.Object == "n1" {
			s.Errorf("got %s, want nothing written to a node whose mark cannot be read", c)
		}
	}
}

// R-DR-16, R-DR-20: a node whose mark cannot be read is a failed one. It does not keep the others of the set waiting for ever.
func TestUnreadableMarkFailsItsNodeInASet(t *testing.T) {
	for _, skip := range []bool{false, true} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.web("web", 2, "n1", "n2")
			s.markDamage()
			ctx, cancel := context.WithTimeout(s.Context(), time.Hour)
			defer cancel()
			set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1", "n2"}, {"n3"}}, SkipFailed: skip, LeaveOpen: true}
			st, err := s.d.Run(ctx, set, nil)
			if err != nil || !st.Done {
				t.Fatalf("Run with SkipFailed %v: got %+v, %v, want it done", skip, st, err)
			}
			s.markDamaged(st.Nodes[0])
			if skip {
				s.wants(st.Nodes[1], drain.Drained, "", drain.OutcomeDrained)
				s.wants(st.Nodes[2], drain.Drained, "", drain.OutcomeDrained)
				return
			}
			s.wants(st.Nodes[1], drain.Pending, "SetStopped", "")
			s.wants(st.Nodes[2], drain.Pending, "SetStopped", "")
			if st.Reason != "MarkUnreadable" || !strings.Contains(st.Message, "n1") {
				t.Errorf("set: got reason %q, message %q, want %s and the node", st.Reason, st.Message, "MarkUnreadable")
			}
			if calls := s.c.Log(); len(calls) != 0 {
				t.Errorf("requests of a set that stopped: got %v, want none", calls)
			}
		})
	}
}

// R-DR-09: whether anything of the holder is on a node whose mark cannot be read is not known: its release fails, and says why.
func TestReleaseOfAnUnreadableMarkFails(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.pass(s.request("n2", func(r *drain.Request) { r.Mode = drain.Cordon }))
		s.markDamage()
		s.c.ClearLog()
		r := s.request("n1", func(r *drain.Request) { r.Mode = drain.Release })
		st, _, _ := s.d.ReconcileRequest(s.Context(), r) // whether that is an error too is not the point
		s.markDamaged(st)
		ctx, cancel := context.WithTimeout(s.Context(), time.Hour)
		defer cancel()
		all, err := s.d.Run(ctx, drain.Set{Request: r, Groups: [][]string{{"n1", "n2"}}}, nil)
		if err != nil || !all.Done || all.Nodes[1].Phase != drain.Released {
			t.Fatalf("Run: got %+v, %v, want it done and n2 released", all, err)
		}
		s.markDamaged(all.Nodes[0])
		s.clean("n2")
	})
}

// What a newer version has written into a mark, about the node or about another holder, is there after each of our writes, to the digit.
func TestUnknownFieldsOfAMarkSurvive(t *testing.T) {
	const theirs = `{"holder":"newer","mode":"Fence","since":"2020-01-01T00:00:00Z","surge":{"a":9007199254740993,"b":[null,"<&>"]}}`
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		s.c.UpdateNode("n1", func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Annotations = map[string]string{drain.MarkAnnotation: `{"unschedulable":false,"fence":{"x":9007199254740993},"holders":[` + theirs + `]}`}
		})
		r := s.request("n1")
		s.pass(r)
		s.markKeeps("cordoned", 2)
		s.phase(r, time.Minute, drain.Drained)
		s.markKeeps("drained", 2)
		r.Mode = drain.Hold
		r.HoldUntil = time.Now().Add(time.Hour)
		s.pass(r)
		s.markKeeps("held", 2)
		r.Mode = drain.Release
		s.phase(r, time.Minute, drain.Released)
		s.markKeeps("released", 1)
		if !s.c.LiveNode("n1").Spec.Unschedulable {
			t.Error("after the release: got the node schedulable, want it left to the other holder")
		}
	})
}

// markKeeps fails the test unless the unknown fields are on n1, beside as many holders.
func (s *stageTest) markKeeps(when string, holders int) {
	s.Helper()
	var m struct {
		Fence   map[string]json.Number `json:"fence"`
		Holders []struct {
			Holder string `json:"holder"`
			Mode   string `json:"mode"`
			Surge  *struct {
				A json.Number `json:"a"`
				B []*string   `json:"b"`
			} `json:"surge"`
		} `json:"holders"`
	}
	text := s.c.LiveNode("n1").Annotations[drain.MarkAnnotation]
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		s.Fatalf("%s: got mark %q: %v", when, text, err)
	}
	if m.Fence["x"] != "9007199254740993" || len(m.Holders) != holders {
		s.Errorf("%s: got mark %s, want its unknown field in it and %d holders", when, text, holders)
	}
	for _, h := range m.Holders {
		if h.Holder != "newer" {
			continue
		}
		if h.Mode != "Fence" || h.Surge == nil || h.Surge.A != "9007199254740993" || len(h.Surge.B) != 2 || *h.Surge.B[1] != "<&>" {
			s.Errorf("%s: got mark %s, want the other holder's entry as it was", when, text)
		}
		return
	}
	s.Errorf("%s: got mark %s, want the other holder in it", when, text)
}
