// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belayproject/belay/examples/demo/internal/crew"
	"github.com/belayproject/belay/examples/demo/internal/fleet"
	"github.com/belayproject/belay/examples/demo/internal/plane"
	"github.com/belayproject/belay/examples/demo/internal/story"
	"github.com/belayproject/belay/examples/internal/screen"
)

// lookEvery is the time between two looks at the nodes.
const lookEvery = 250 * time.Millisecond

// Options of a Player. All but Plane are required.
type Options struct {
	Cluster *fleet.Cluster
	Screen  *screen.Screen
	// Plane is the control plane whose API server may be stopped; nil where it is somebody else's.
	Plane *plane.Plane
	// Known are the configs that nodes may run before the first push.
	Known []story.Config
	// Steps is how many there are in all.
	Steps int
	// StepTimeout bounds each step.
	StepTimeout time.Duration
	// Pause is how long the end of a step is shown before the next one begins.
	Pause time.Duration
}

// A Player plays a story once.
type Player struct {
	o       Options
	nodes   []*crew.Node
	began   time.Time
	results []story.Result
}

// New returns a Player. Its clock starts now.
func New(o Options) *Player { return &Player{o: o, began: time.Now()} }

// Results are those of the steps played so far, the last one included where it failed.
func (p *Player) Results() []story.Result { return p.results }

// AllSeen reports whether all that was expected so far was seen.
func (p *Player) AllSeen() bool {
	return !slices.ContainsFunc(p.results, func(r story.Result) bool { return !r.OK() })
}

// Play plays the steps on nodes that were started, until one leads to something else than expected. The error says
// that the demo itself could not go on; what was not seen on the nodes is in the results.
func (p *Player) Play(ctx context.Context, nodes []*crew.Node, steps []story.Step) error {
	p.nodes = nodes
	for _, s := range steps {
		good := slices.IndexFunc(p.o.Known, func(c story.Config) bool { return c.Name == s.Good.Name })
		if good >= 0 {
			s.Good = p.o.Known[good] // with the reference that its push returned
		}
		p.announce(len(p.results)+1, p.o.Steps, s)
		run, err := p.start(ctx, s)
		if err != nil {
			return err
		}
		r, err := run.watch(ctx)
		if err != nil {
			return err
		}
		p.results = append(p.results, r)
		p.conclude(r)
		if !r.OK() || len(p.results) == p.o.Steps {
			return nil
		}
		if err := run.linger(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start takes note of where every node stands and pushes the config of a step.
func (p *Player) start(ctx context.Context, s story.Step) (*stepRun, error) {
	run := &stepRun{Player: p, step: s}
	if s.Kind == story.Alone || s.Kind == story.Settle { // whatever the processes have done counts
		at := p.began // the agents were started when the clock was
		if len(p.results) > 0 {
			at = time.Now()
		}
		run.marks = slices.Repeat([]story.Mark{{At: at}}, len(p.nodes))
		return run, nil
	}
	for _, n := range p.nodes {
		entries, err := n.Runs()
		if err != nil {
			return nil, err
		}
		run.marks = append(run.marks, story.Mark{At: time.Now(), Entries: len(entries)})
	}
	return run, run.push(ctx)
}

// stepRun is one step while it is played.
type stepRun struct {
	*Player
	step     story.Step
	marks    []story.Mark // per node
	since    []time.Time  // per node: from when on nothing was missing; zero while something is
	down, up time.Time    // when the API server was stopped and was back
}

// push gives the config to the fleet and takes note of how the cluster knows it.
func (r *stepRun) push(ctx context.Context) error {
	ref, err := r.o.Cluster.Push(ctx, r.step.Config)
	if err != nil {
		return err
	}
	adopted := r.step.Good.Name == r.step.Config.Name
	r.step.Config.Ref = ref
	if adopted {
		r.step.Good = r.step.Config
	}
	r.o.Known = append(r.o.Known, r.step.Config)
	r.say("Pushed: " + ref.String() + ".")
	return nil
}

// watch looks at the nodes until nothing is missing on any of them, or the time is up.
func (r *stepRun) watch(ctx context.Context) (story.Result, error) {
	r.since = make([]time.Time, len(r.marks))
	end := time.Now().Add(r.o.StepTimeout)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		o := r.observe(ctx)
		if err := errors.Join(ctx.Err(), r.ended()); err != nil {
			return story.Result{}, err
		}
		missing := r.missing(o)
		r.show(r.step, r.marks, o)
		if err := r.outage(ctx, o); err != nil {
			return story.Result{}, err
		}
		if all := slices.Concat(missing...); len(all) == 0 && r.serverIsRight(o) && r.outageOver() || time.Now().After(end) {
			result := r.result(o, missing)
			r.addDetails(ctx, &result)
			return result, nil
		}
		select {
		case <-ctx.Done():
			return story.Result{}, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// addDetails asks the agents why they have refused a config. The API server has the reason alone.
func (r *stepRun) addDetails(ctx context.Context, result *story.Result) {
	if r.step.Kind != story.Refuse {
		return
	}
	for _, n := range r.nodes {
		report, err := n.Status(ctx)
		if err == nil {
			result.AddDetail(story.Detail{Node: n.Name, Text: report.Detail})
		}
	}
}

// serverIsRight reports whether the API server answers, or in the step before it runs whether it does not.
func (r *stepRun) serverIsRight(o observation) bool {
	if r.step.Kind == story.Alone {
		return fleet.IsAway(o.server)
	}
	return o.server == nil
}

// linger shows the nodes a while longer, for people to read.
func (r *stepRun) linger(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for end := time.Now().Add(r.o.Pause); time.Now().Before(end); {
		r.show(r.step, r.marks, r.observe(ctx))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// missing is what each node still lacks, and keeps the time since which it lacks nothing.
func (r *stepRun) missing(o observation) [][]string {
	all := make([][]string, len(o.seen))
	for i, s := range o.seen {
		all[i] = r.step.Missing(r.marks[i], s)
		switch {
		case len(all[i]) > 0:
			r.since[i] = time.Time{}
		case r.since[i].IsZero():
			r.since[i] = o.at
		}
	}
	return all
}

// ended says which process of the demo is gone though it must not be.
func (p *Player) ended() error {
	var errs []error
	for _, n := range p.nodes {
		errs = append(errs, n.Ended())
	}
	if p.o.Plane != nil {
		errs = append(errs, p.o.Plane.Ended())
	}
	return errors.Join(errs...)
}

// outage stops the API server once every node has crashed with the bad config, and starts it again once every node runs the good one
// and says so itself.
func (r *stepRun) outage(ctx context.Context, o observation) error {
	if !r.step.Outage || r.o.Plane == nil {
		return nil
	}
	switch {
	case r.down.IsZero() && r.all(o, story.Step.Crashed):
		if err := r.o.Plane.StopServer(ctx); err != nil {
			return err
		}
		r.down = time.Now()
		r.say("The API server is stopped now: every node has crashed with " + r.step.Config.Name + ".")
	case !r.down.IsZero() && r.up.IsZero() && o.server != nil && r.all(o, story.Step.Settled):
		r.up = time.Now()
		r.say("Every node runs " + r.step.Good.Name + " again. The API server is started now.")
		return r.o.Plane.StartServer(ctx)
	}
	return nil
}

// all reports whether ok holds for every node.
func (r *stepRun) all(o observation, ok func(story.Step, story.Mark, story.Seen) bool) bool {
	for i, s := range o.seen {
		if !ok(r.step, r.marks[i], s) {
			return false
		}
	}
	return true
}

func (r *stepRun) outageOver() bool { return !r.step.Outage || r.o.Plane == nil || !r.up.IsZero() }

// result sums the step up.
func (r *stepRun) result(o observation, missing [][]string) story.Result {
	res := story.Result{Step: r.step}
	for i, s := range o.seen {
		after := time.Duration(0)
		if !r.since[i].IsZero() {
			after = r.since[i].Sub(r.marks[i].At)
		}
		res.Outcomes = append(res.Outcomes, r.step.Outcome(r.marks[i], s, missing[i], after))
		if !r.down.IsZero() && !r.up.IsZero() {
			if err := r.step.BackWithin(r.marks[i], s, r.down, r.up); err != nil {
				res.Missing = append(res.Missing, err.Error())
			}
		}
	}
	if !r.serverIsRight(o) {
		res.Missing = append(res.Missing, fmt.Sprintf("the API server answers (%v)", o.server))
	}
	if !r.outageOver() {
		res.Missing = append(res.Missing, "the rollback without the API server was not seen")
	}
	if !r.up.IsZero() {
		res.Down = r.up.Sub(r.down)
	}
	return res
}
