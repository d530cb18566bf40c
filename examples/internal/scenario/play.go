// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belayproject/belay/examples/internal/rollouts"
	"github.com/belayproject/belay/examples/internal/screen"
	"github.com/belayproject/belay/examples/internal/simnodes"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

const (
	// lookEvery is the time between two looks where nothing has changed, lookAfter the least between two.
	lookEvery, lookAfter = time.Second, 200 * time.Millisecond
	textWidth            = 100
)

// Options of a Player. All but Pause are required.
type Options struct {
	Fleet  *rollouts.Fleet
	Crowd  *simnodes.Crowd
	Screen *screen.Screen
	Plan   rollouts.Plan
	// Data is the content of the config of a name.
	Data func(name string) map[string]string
	// Page is the address of the fleet page.
	Page string
	// Requests is how many requests the controller has sent.
	Requests func(ctx context.Context) (int64, error)
	// Ended says which part of the demo is gone that must not be.
	Ended func() error
	// Timeout bounds each act; Pause is how long its end is shown.
	Timeout, Pause time.Duration
}

// A Player plays the acts once.
type Player struct {
	o         Options
	revisions map[string]rollouts.Revision
	results   []Result
}

// New returns a Player.
func New(o Options) *Player { return &Player{o: o, revisions: map[string]rollouts.Revision{}} }

// Results are those of the acts so far, the last one included where it failed.
func (p *Player) Results() []Result { return p.results }

// Play plays acts until one leads to something else than expected. The error says that the demo itself could not go on.
func (p *Player) Play(ctx context.Context, acts []Act) error {
	for i, a := range acts {
		paint := p.o.Screen.Palette()
		p.o.Screen.Say("", paint.Paint(screen.Strong, fmt.Sprintf("[%d/%d] %s", i+1, len(acts), a.Title())))
		p.say(a.Push)
		p.say(a.Expect)
		run, err := p.begin(ctx, a)
		if err != nil {
			return err
		}
		r, err := run.watch(ctx)
		if err != nil {
			return err
		}
		p.results = append(p.results, r)
		p.conclude(r)
		if !r.OK() {
			return nil
		}
		if err := run.linger(ctx); err != nil {
			return err
		}
	}
	return nil
}

// playing is one act while it is played.
type playing struct {
	*Player
	act            Act
	began          time.Time
	before         int64 // the generation of the Rollout
	epoch          int64 // of the ledger: how many attempts there were
	control, agent int64 // requests
	most           int
	bound          int64
	revision       rollouts.Revision
}

// begin asks for what the act is about.
func (p *Player) begin(ctx context.Context, a Act) (*playing, error) {
	run := &playing{Player: p, act: a, began: time.Now(), bound: -1, epoch: p.o.Fleet.Epoch(), agent: p.o.Crowd.Calls()}
	p.o.Fleet.Most() // what came before
	var err error
	if run.control, err = p.o.Requests(ctx); err != nil {
		return nil, err
	}
	now := p.o.Fleet.Rollout()
	if now != nil {
		run.before = now.Generation
	}
	if _, published := p.revisions[a.Name]; !published {
		r, err := p.o.Fleet.Publish(ctx, a.Name, p.o.Data(a.Name))
		if err != nil {
			return nil, err
		}
		p.revisions[a.Name] = r
	}
	run.revision = p.revisions[a.Name]
	switch {
	case now == nil:
		err = p.o.Fleet.Begin(ctx, run.revision, p.o.Plan)
	case a.Kind == Back:
		err = run.back(ctx, now)
	default:
		err = p.o.Fleet.Turn(ctx, run.revision)
	}
	return run, err
}

// back asks for the entry of the history that the act is about.
func (r *playing) back(ctx context.Context, now *v1alpha1.Rollout) error {
	for _, e := range now.Status.History {
		if e.Revision.Name == r.act.Name {
			r.say(fmt.Sprintf("That is number %d.", e.Number))
			return r.o.Fleet.Back(ctx, e.Number)
		}
	}
	return fmt.Errorf("the history of the Rollout has no entry of %s", r.act.Name)
}

// watch looks at the fleet until nothing is missing any more, or the time is up.
func (r *playing) watch(ctx context.Context) (Result, error) {
	end := r.began.Add(r.o.Timeout)
	for {
		s := r.look()
		if err := errors.Join(ctx.Err(), r.o.Ended()); err != nil {
			return Result{}, err
		}
		r.show(s)
		missing := r.act.Missing(s)
		if len(missing) == 0 || time.Now().After(end) {
			return r.result(ctx, s, missing)
		}
		if err := r.wait(ctx); err != nil {
			return Result{}, err
		}
	}
}

// wait returns when there may be something new.
func (r *playing) wait(ctx context.Context) error {
	least, most := time.NewTimer(lookAfter), time.NewTimer(lookEvery)
	defer least.Stop()
	defer most.Stop()
	for _, next := range []<-chan time.Time{least.C, most.C} {
		changed := r.o.Fleet.Changes()
		if next == least.C {
			changed = nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-next:
		}
	}
	return nil
}

// linger shows the end of the act a while longer.
func (r *playing) linger(ctx context.Context) error {
	for end := time.Now().Add(r.o.Pause); time.Now().Before(end); {
		if err := r.wait(ctx); err != nil {
			return err
		}
		r.show(r.look())
	}
	return nil
}

// look is what is seen now.
func (r *playing) look() Seen {
	r.most = max(r.most, r.o.Fleet.Most())
	s := Seen{
		Nodes: len(r.o.Fleet.Nodes), Runs: map[string]int{}, Cap: r.o.Plan.Cap, Most: r.most, Away: len(r.o.Fleet.Away()),
	}
	for _, n := range r.o.Fleet.Nodes {
		if config, ok := r.o.Crowd.Runs(n); ok {
			s.Runs[config]++
		}
	}
	for _, n := range r.o.Crowd.Crashed(r.revision.Digest) {
		s.Crashed++
		if config, ok := r.o.Crowd.Runs(n); ok && config == r.act.Good {
			s.Again++
		}
	}
	now := r.o.Fleet.Rollout()
	if now != nil && now.Generation > r.before && now.Status.ObservedGeneration == now.Generation && now.Status.Revision != nil && *now.Status.Revision == r.revision {
		s.Status = &now.Status
		if w := now.Status.WorstCase; w != nil && r.bound < 0 && rollout.Phase(now.Status.Phase) == rollout.Running {
			r.bound = w.Broken
			r.say("The status says beforehand: " + w.Message)
		}
	}
	s.Bound = r.bound
	return s
}

// result sums the act up.
func (r *playing) result(ctx context.Context, s Seen, missing []string) (Result, error) {
	control, err := r.o.Requests(ctx)
	return Result{
		Act: r.act, Seen: s, Took: time.Since(r.began), Updated: r.o.Fleet.Epoch() - r.epoch,
		Controller: control - r.control, Agents: r.o.Crowd.Calls() - r.agent, Missing: missing,
	}, err
}

// show draws how far the act is.
func (r *playing) show(s Seen) {
	fleet := ""
	if !r.o.Screen.Live() {
		if s.Status == nil {
			return // nothing to tell yet
		}
	} else {
		away := r.o.Fleet.Away()
		fleet = Map(r.o.Fleet.Nodes, func(node string) rune {
			config, ok := r.o.Crowd.Runs(node)
			switch {
			case !ok:
				return SignDown
			case away[node]:
				return SignAway
			case config == r.act.Name:
				return SignDone
			}
			return SignBefore
		})
	}
	r.o.Screen.Update(screen.View{
		Layout: Layout(), Rows: []screen.Row{r.act.Row(s, time.Since(r.began), fleet)}, Head: screen.Cell{Text: " "},
		Foot: screen.Cell{Text: legend + "    the same as a page: " + r.o.Page, Tone: screen.Faint},
	})
}

// conclude says what happened.
func (p *Player) conclude(r Result) {
	paint, mark, tone := p.o.Screen.Palette(), "ok   ", screen.Good
	if !r.OK() {
		mark, tone = "NOT  ", screen.Bad
	}
	for _, l := range screen.Wrap(r.Sentence(), p.width()) {
		p.o.Screen.Say(paint.Paint(tone, mark) + l)
		mark = "     "
	}
	for _, m := range r.Missing {
		p.say("- not seen that " + m)
	}
}

// say writes a sentence below an act's title.
func (p *Player) say(text string) {
	for _, l := range screen.Wrap(text, p.width()) {
		p.o.Screen.Say("     " + l)
	}
}

// width leaves room for the indent.
func (p *Player) width() int { return min(p.o.Screen.Width(), textWidth) - 6 }
