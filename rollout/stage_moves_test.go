// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
)

// named are stages: one letter each, of which only the last takes all nodes.
func named(names string) (stages []Stage) {
	for i, name := range strings.Split(names, "") {
		s := Stage{Name: name, Size: size(1), Soak: time.Hour}
		switch {
		case i == len(names)-1:
			s.Size, s.Soak = nil, 0
		case name == "b":
			s.Size = size(2)
		}
		stages = append(stages, s)
	}
	return stages
}

// soaking is a fleet whose stage b, of a, b and c, soaks.
func soaking(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, 4)
	f.p.Stages = named("abc")
	f.passes(800, AtGate)
	f.now = f.now.Add(time.Hour)
	f.passes(50)
	f.wantStage("before", "b", 2)
	return f
}

// wantStage checks which stage is under way, and how many nodes had their turn.
func (f *fleet) wantStage(what, name string, runs int) {
	f.t.Helper()
	is := "none"
	if i := f.last.Progress.Stage; i < len(f.p.Stages) {
		is = f.p.Stages[i].Name
	}
	if is != name || f.runs("v2") != runs {
		f.t.Errorf("%s: stage %s is under way, %d nodes run v2, want stage %s and %d", what, is, f.runs("v2"), name, runs)
	}
}

// R-RO-26: stages that are put in or taken away in the middle of a rollout shift no other: the one under way goes by its name, and what it has waited
// for counts. One that is gone makes way for the next.
func TestStagesGoByTheirNames(t *testing.T) {
	for _, c := range []struct {
		stages, want string
		stays        bool
	}{
		{"xabc", "b", true}, {"abxc", "b", true}, {"axbc", "b", true}, {"bc", "b", true}, {"cba", "b", true},
		{"ac", "c", false}, {"c", "c", false}, {"axc", "x", false}, {"a", "none", false},
	} {
		f := soaking(t)
		since, node := f.s.Progress.SoakSince, NodeProgress{Node: "node-003", Stage: 1, Failed: true, Recovered: true, Result: Succeeded}
		f.s.Progress.Nodes = map[string]NodeProgress{"uid-node-003": node}
		f.p.Stages = named(c.stages)
		d := f.plan()
		f.wantStage(c.stages, c.want, 2)
		p := d.Progress
		if kept := p.SoakSince.Equal(since); kept != c.stays {
			t.Errorf("%s: it soaks since %s, and did since %s, want that kept: %t", c.stages, p.SoakSince, since, c.stays)
		}
		if got := strings.Join(p.Stages, ""); got != c.stages {
			t.Errorf("%s: the progress has the stages %s", c.stages, got)
		}
		if !c.stays && p.StageFrom != len(p.Outcomes) {
			t.Errorf("%s: the stage counts %d outcomes of another", c.stages, len(p.Outcomes)-p.StageFrom)
		}
		if e := p.Nodes["uid-node-003"]; c.want != "none" && e.Stage != strings.Index(c.stages, c.want) {
			t.Errorf("%s: the node was begun in stage %d, want that of %s", c.stages, e.Stage, c.want)
		}
		f.s.Progress.Nodes = nil
		for range 8 {
			f.now = f.now.Add(time.Hour)
			f.passes(30)
		}
		if c.want != "none" && (f.last.Phase != Completed || f.runs("v2") != 4) {
			t.Errorf("%s: the rollout is %s with %d nodes: %s", c.stages, f.last.Phase, f.runs("v2"), f.last.Message)
		}
	}
}

// A stage that somebody has promoted stays promoted wherever it goes, and no other one is; a completed rollout stays completed.
func TestPromotedStageStaysPromoted(t *testing.T) {
	for stages, want := range map[string]string{"xabc": "c", "bc": "c", "axc": "x"} {
		f := soaking(t)
		f.s.Progress.Promoted = 2
		f.p.Stages = named(stages)
		f.plan()
		f.wantStage(stages, want, 2)
	}
	f := newFleet(t, 2)
	f.passes(100, Completed)
	for _, stages := range []string{"ab", "xab", "abz"} {
		f.p.Stages = named(stages)
		if f.passes(3); f.last.Phase != Completed {
			t.Errorf("with the stages %s the rollout, which was completed, is %s", stages, f.last.Phase)
		}
	}
}

// What was stored before there were names goes by its numbers.
func TestProgressWithoutNamesOfStages(t *testing.T) {
	f := soaking(t)
	if want := []string{"a", "b", "c"}; !slices.Equal(f.s.Progress.Stages, want) {
		t.Errorf("the progress has the stages %v, want %v", f.s.Progress.Stages, want)
	}
	f.s.Progress.Stages = nil
	f.p.Stages = named("xabc")
	f.plan()
	f.wantStage("numbers", "a", 2)
	one := newFleet(t, 1)
	if got := fmt.Sprint(one.pass().Progress.Stages); got != "[all]" {
		t.Errorf("without stages the progress has %s", got)
	}
}
