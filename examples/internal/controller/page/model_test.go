// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/examples/internal/controller/page"
	"github.com/belayproject/belay/examples/internal/controller/page/pagetest"
	"github.com/belayproject/belay/internal/golden"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

func now() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }

func inJSON(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + "\n"
}

// The model says of each node what it is, and of each rollout how far it is.
func TestModel(t *testing.T) {
	s := pagetest.Seen(t, 12, now())
	m := page.Of(s)
	golden.Check(t, "model.json", inJSON(t, m))
	want := map[int]page.Kind{
		0: page.Done, 1: page.Done, 2: page.InFlight, 3: page.Broken, 4: page.Failed, 5: page.Deferred, 6: page.Deferred, 7: page.Waiting, 8: page.Waiting,
	}
	for i, kind := range want {
		if got := m.Nodes["fleet"][pagetest.NodeName(i)].Kind; got != kind {
			t.Errorf("node %d is %q, want %q", i, got, kind)
		}
	}
	if c, apart := m.Nodes[""][pagetest.NodeName(11)]; !apart || c.Kind != page.Outside {
		t.Errorf("the node that is not selected is %+v, want it outside of all rollouts", c)
	}
	if runs := m.Nodes["fleet"][pagetest.NodeName(7)].Runs; !strings.HasPrefix(runs, "v1@") {
		t.Errorf("a node that runs another content under the name v1 runs %q, want its digest, too", runs)
	}
	if names := m.Names(); len(names) != 12 || !slices.IsSorted(names) {
		t.Errorf("the names are %q, want 12 in order", names)
	}
}

// Where as many are away as may be, so that nothing is decided, the kinds on the map are as many as the controller has counted.
func TestKindsAreTheCountsOfTheController(t *testing.T) {
	s := pagetest.Seen(t, 40, now())
	v, err := s.Decide(&s.Rollouts[0])
	if err != nil {
		t.Fatal(err)
	}
	counts := map[page.Kind]int{}
	for _, c := range page.Of(s).Nodes["fleet"] {
		counts[c.Kind]++
	}
	c := v.Decisions.Counts
	want := map[page.Kind]int{
		page.Done: c.Done, page.InFlight: c.InFlight, page.Waiting: c.Waiting, page.Deferred: c.Deferred, page.Failed: c.Failed, page.Broken: c.Broken,
	}
	for kind, n := range want {
		if counts[kind] != n {
			t.Errorf("%d are %s, want %d", counts[kind], kind, n)
		}
	}
	says := s.Rollouts[0].Status.Message
	if want := fmt.Sprintf("%d in flight, %d waiting", counts[page.InFlight], counts[page.Waiting]); !strings.Contains(says, want) {
		t.Errorf("the status says %q, want %q", says, want)
	}
}

// A node that is to have its turn next waits until it has its slot, though it is decided that it gets one.
func TestNodeThatIsNextWaits(t *testing.T) {
	s := pagetest.Seen(t, 12, now())
	s.Rollouts[0].Spec.Caps[0].Max = intstr.FromInt32(4)
	v, err := s.Decide(&s.Rollouts[0])
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	for _, n := range v.Decisions.Nodes {
		if v.Decisions.Ledger.Slot(n.UID) == nil || v.Snapshot.Ledger.Slot(n.UID) != nil {
			continue
		}
		next++
		if c := page.Of(s).Nodes["fleet"][n.Node]; c.Kind != page.Waiting {
			t.Errorf("%s, which is to get a slot, is %q, want %q", n.Node, c.Kind, page.Waiting)
		}
	}
	if next == 0 {
		t.Error("nobody is to get a slot: nothing is shown")
	}
}

// R-RO-27: nodes that belong to an older rollout are put off in a younger one, as its controller counts them, and that is a trouble of it.
func TestOverlappingRollouts(t *testing.T) {
	s := pagetest.Seen(t, 12, now())
	late := s.Rollouts[0].DeepCopy()
	s.Rollouts[0].CreationTimestamp = metav1.NewTime(now().Add(-time.Hour))
	late.Name, late.UID, late.CreationTimestamp, late.Spec.Selector = "a-late", "r-2", metav1.NewTime(now()), &metav1.LabelSelector{}
	late.Status = v1alpha1.RolloutStatus{Phase: "Running", ObservedGeneration: late.Generation, Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionOverlapping, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonOverlap, Message: `11 nodes are selected that belong to rollout "fleet"`,
	}}}
	s.Rollouts = append(s.Rollouts, *late)
	m := page.Of(s)
	golden.Check(t, "overlap.json", inJSON(t, map[string]any{"rollout": m.Rollouts["a-late"], "nodes": m.Nodes["a-late"]}))
	if c := m.Nodes["a-late"][pagetest.NodeName(8)]; c.Kind != page.Deferred || c.Reason != string(rollout.ReasonOther) {
		t.Errorf("a node of the older rollout is %+v in the younger one, want it %s for %s", c, page.Deferred, rollout.ReasonOther)
	}
	if c := m.Nodes["a-late"][pagetest.NodeName(11)]; c.Kind != page.Waiting || c.Reason == string(rollout.ReasonOther) {
		t.Errorf("a node that no other rollout selects is %+v, want it waiting", c)
	}
	if r := m.Rollouts["a-late"]; len(r.Troubles) != 1 || !strings.Contains(r.Troubles[0], "Overlapping is True") {
		t.Errorf("its troubles are %q, want that it overlaps", r.Troubles)
	}
}

// A rollout that can't be decided on says why, and its nodes are shown all the same.
func TestRolloutThatCannotBeDecided(t *testing.T) {
	s := pagetest.Seen(t, 12, now())
	s.Rollouts[0].Spec.Revision.Name = "v3"
	m := page.Of(s)
	if r := m.Rollouts["fleet"]; !strings.Contains(r.Error, "v3") || strings.Contains(r.Error, "\n") {
		t.Errorf("the error is %q, want one line about v3", r.Error)
	}
	if len(m.Nodes[""]) != 12 {
		t.Errorf("%d nodes are shown, want 12", len(m.Nodes[""]))
	}
}

// A rollout that no controller has looked at is shown as that.
func TestFreshRollout(t *testing.T) {
	s := pagetest.Seen(t, 12, now())
	s.Rollouts[0].Status = v1alpha1.RolloutStatus{}
	if r := page.Of(s).Rollouts["fleet"]; r.Phase != "NotSeen" || r.Current || r.Message == "" {
		t.Errorf("it is %q, %q, current %t; want NotSeen with a message", r.Phase, r.Message, r.Current)
	}
}

// The story of a node is that of kubectl belay why, with what can be typed.
func TestStory(t *testing.T) {
	s := pagetest.Seen(t, 12, now())
	s.Pods, s.Budgets = pagetest.WorkOn(pagetest.NodeName(2))
	var all strings.Builder
	for _, i := range []int{2, 3} {
		st, err := page.StoryOf(s, pagetest.NodeName(i))
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(inJSON(t, st))
	}
	golden.Check(t, "story.json", all.String())
	if _, err := page.StoryOf(s, "other"); !errors.Is(err, page.ErrNoNode) {
		t.Errorf("of a node that does not exist: %v, want %v", err, page.ErrNoNode)
	}
}

// A change applied to the model before is the model after, also as it is sent, and there is none where nothing has changed.
func TestChangesAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	before := anyModel(rng)
	for range 500 {
		after := anyModel(rng)
		if c := page.Diff(after, after); !c.Empty() {
			t.Fatalf("a model differs from itself by %s", inJSON(t, c))
		}
		raw, err := json.Marshal(page.Diff(before, after))
		if err != nil {
			t.Fatal(err)
		}
		var c page.Change
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		kept := inJSON(t, before)
		if got := before.Apply(c); !reflect.DeepEqual(got, after) {
			t.Fatalf("with %s\n%s becomes %s, want %s", raw, kept, inJSON(t, got), inJSON(t, after))
		}
		if is := inJSON(t, before); is != kept {
			t.Fatalf("applying a change has made %s of %s", is, kept)
		}
		before = after
	}
}

// anyModel has few names, so that two of them have much in common.
func anyModel(rng *rand.Rand) page.Model {
	m := page.Model{Rollouts: map[string]page.Rollout{}, Nodes: map[string]map[string]page.Cell{}, Meanings: map[string]string{}}
	for _, name := range []string{"", "a", "b"} {
		if rng.IntN(4) == 0 {
			continue
		}
		cells := map[string]page.Cell{}
		for i := range 5 {
			if rng.IntN(3) > 0 {
				cells[pagetest.NodeName(i)] = page.Cell{Kind: page.Done, Stage: int32(rng.IntN(2)) - 1, State: "Resting", Reason: fmt.Sprint(rng.IntN(2)), Runs: "v1"}
			}
		}
		if len(cells) > 0 {
			m.Nodes[name] = cells
		}
		if name != "" {
			m.Rollouts[name] = page.Rollout{Phase: fmt.Sprint(rng.IntN(2)), Stages: slices.Repeat([]string{"s"}, 1+rng.IntN(2))}
		}
		m.Meanings[fmt.Sprint(rng.IntN(3))] = fmt.Sprint(rng.IntN(2))
	}
	return m
}

// What one node does costs a line on the wire, not the fleet.
func TestChangeOfOneNodeIsSmall(t *testing.T) {
	s := pagetest.Seen(t, 600, now())
	before := page.Of(s)
	s.Shadows[400].Status.Current = nil
	raw, err := json.Marshal(page.Diff(before, page.Of(s)))
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 200 || !strings.Contains(string(raw), pagetest.NodeName(400)) {
		t.Errorf("the change of one node is %d bytes: %s", len(raw), raw)
	}
}

// A cell that has another shape is refused.
func TestCellIsRefused(t *testing.T) {
	for _, text := range []string{`{}`, `["done"]`, `["done",1,"Resting","UpToDate",7]`} {
		var c page.Cell
		if err := json.Unmarshal([]byte(text), &c); err == nil {
			t.Errorf("%s is read as %+v", text, c)
		}
	}
}
