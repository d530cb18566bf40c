// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// A StageLoad is what [Bound] has to know of a stage.
type StageLoad struct {
	// Name names the stage.
	Name string
	// Nodes is how many it takes on.
	Nodes int
	// InFlight is how many of them can be disrupted at a time, by all caps. Zero means all.
	InFlight int
}

// A Blast is the worst that a fatal revision does before the rollout stops by itself.
type Blast struct {
	// Nodes are those of all stages, Broken is how many of them can be broken in all.
	Nodes, Broken int
	// Stages has one entry for each stage, in order.
	Stages []StageBlast
}

// A StageBlast is the worst that there is when a stage is over, or the rollout has stopped in it.
type StageBlast struct {
	Stage string
	// Broken is how many nodes are broken then, those of earlier stages included.
	Broken int
	// Failures is how many of them are seen before nothing more is begun; the others are in flight at that moment. Detector is what trips
	// then. It is empty if nothing does: the nodes of the stage come to an end first, or no node has ever succeeded, and then the
	// first failure keeps the revision from nodes that it has not touched.
	Failures int
	Detector string
}

// Bound computes how many nodes can be broken before the rollout stops by itself, if the revision is fatal: from some moment on, be it the
// beginning or a late one, every node that it is tried on fails. Nil detectors are the default ones.
//
// It is the number of failures that trips a detector, after the successes that are worst for it, and what is in flight in that stage besides the
// last of them. All nodes that failed count, also those that fell back to what they ran before. The moment, how long each node takes,
// refusals, and what a pass of the controller sees at once don't matter: no such run exceeds it. One run reaches it.
//
// It holds until somebody accepts failures, and for the nodes and caps as they are; detectors that are not [Bounded] don't count. A
// revision that fails on some nodes and goes on succeeding on others may break more before it is found out.
func Bound(stages []StageLoad, detectors []Detector) Blast {
	b := Blast{Stages: make([]StageBlast, len(stages))}
	for _, s := range stages {
		b.Nodes += max(0, s.Nodes)
	}
	detectors = detectWith(detectors)
	stops := boundStops(detectors, b.Nodes)
	before := 0
	for i, s := range stages {
		s.Nodes = max(0, s.Nodes)
		b.Stages[i] = s.blast(before, stops, detectors)
		b.Broken = max(b.Broken, b.Stages[i].Broken)
		before += s.Nodes
	}
	return b
}

// A boundStop is the detector that trips first from so many successes on, with how many failures; none if they are 0.
type boundStop struct{ from, failures, detector int }

// boundStops are the first to trip after 0, 1, 2 and more successes, as far as they are others than the one before.
func boundStops(detectors []Detector, nodes int) []boundStop {
	stops := []boundStop{{}}
	for succeeded := range nodes + 1 {
		first := boundStop{from: succeeded}
		for i, d := range detectors {
			if bounded, ok := d.(Bounded); ok {
				if n := bounded.StopsAt(succeeded, nodes); n > 0 && (first.failures == 0 || n < first.failures) {
					first.failures, first.detector = n, i
				}
			}
		}
		if last := &stops[len(stops)-1]; first.failures != last.failures || first.detector != last.detector {
			stops = append(stops, first)
		}
	}
	return stops
}

// blast is the worst by the end of the stage, when so many nodes had their turn before it.
func (s StageLoad) blast(before int, stops []boundStop, detectors []Detector) StageBlast {
	inFlight := s.inFlight()
	// Nothing has succeeded: all nodes before have refused, and those in flight fail.
	worst := StageBlast{Stage: s.Name, Broken: min(s.Nodes, inFlight), Failures: min(1, s.Nodes)}
	for succeeded := 1; succeeded < before+s.Nodes; succeeded++ {
		for len(stops) > 1 && stops[1].from <= succeeded {
			stops = stops[1:]
		}
		// All others fail, as far as they come to it. Those before the stage may be too many for that: some of them have refused then.
		stop, broken, stopped := stops[0], before+s.Nodes-succeeded, false
		if stop.failures > 0 && broken >= stop.failures {
			broken, stopped = min(broken, stop.failures-1+inFlight), true
		}
		if broken > worst.Broken {
			worst = StageBlast{Stage: s.Name, Broken: broken, Failures: broken}
			if stopped {
				worst.Failures, worst.Detector = stop.failures, detectors[stop.detector].Name()
			}
		}
	}
	return worst
}

func (s StageLoad) inFlight() int {
	if s.InFlight < 1 {
		return s.Nodes
	}
	return min(s.InFlight, s.Nodes)
}

// Exceeds reports whether more nodes can be broken than the number or the percentage of all nodes, rounded down and at least 1, and says so.
// A limit that cannot be read is exceeded.
func (b Blast) Exceeds(limit intstr.IntOrString) (reason string, exceeded bool) {
	n, err := intstr.GetScaledValueFromIntOrPercent(&limit, b.Nodes, false)
	if err != nil {
		return fmt.Sprintf("limit %q: %v", limit.String(), err), true
	}
	if limit.Type == intstr.String {
		n = max(1, n)
	}
	if b.Broken <= n {
		return "", false
	}
	return fmt.Sprintf("%s; the limit is %d (%s)", b, n, limit.String()), true
}

// String says it in one sentence.
func (b Blast) String() string {
	for _, s := range b.Stages {
		switch {
		case s.Broken != b.Broken || b.Broken == 0:
		case s.Detector != "":
			return fmt.Sprintf("a fatal revision can break %d of %d nodes before it is stopped in stage %q: detector %q trips at failure %d",
				b.Broken, b.Nodes, s.Stage, s.Detector, s.Failures)
		case s.Failures < s.Broken:
			return fmt.Sprintf("a fatal revision can break %d of %d nodes before it is stopped in stage %q: those that are in flight there at the first failure",
				b.Broken, b.Nodes, s.Stage)
		default:
			return fmt.Sprintf("a fatal revision can break %d of %d nodes: no detector trips by the end of stage %q", b.Broken, b.Nodes, s.Stage)
		}
	}
	return fmt.Sprintf("a fatal revision can break none of %d nodes", b.Nodes)
}
