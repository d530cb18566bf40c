// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/tier"
)

// A fleet lives through chaos, through a proxy that cuts idle connections, and through an API server that lets too few requests in: R-RO-01, R-RO-05, R-RO-28,
// R-CS-16. What is checked meanwhile stands in the package's comment.
func TestFleetLivesThroughFaults(t *testing.T) {
	t.Parallel()
	whole := tier.RunsWhole(t)
	s := newStage(t)
	began := time.Now()
	defer func() { // also of a run that fails
		s.figures(began)
		s.confess()
	}()
	s.quietRound()
	s.t.Logf("%d nodes run their first config, %s", len(s.all()), time.Since(began).Round(time.Second))
	s.chaosRounds()
	if whole || s.chaos > 0 {
		s.idleRound()
		s.narrowRound()
	}
	s.proven()
}

// quietRound brings the fleet to its first config.
func (s *stage) quietRound() {
	s.t.Helper()
	r := s.publish(false)
	s.turn(r)
	s.brings(r, func() {})
	s.sound()
}

// chaosRounds has a fatal config and two good ones by turns go over the fleet while faults strike; the last is a good one, which is over when they are.
func (s *stage) chaosRounds() {
	s.t.Helper()
	p := s.plague()
	for n, kills := 1, true; kills || !p.over(); n++ {
		kills = n%3 == 1
		r := s.publish(kills)
		s.turn(r)
		if kills {
			broken, bound := s.stops(r, p.strike)
			s.fatal++
			s.t.Logf("%s stopped with %d broken nodes, bound %d", r.Name, broken, bound)
		} else {
			s.brings(r, p.strike)
		}
		s.sound()
	}
}

// idle is after what time the proxy cuts a connection, as a middlebox between nodes and API server may.
const idle = 3 * time.Second

// remembers is for how long the watch cache of an API server has events at least: DefaultEventFreshDuration of k8s.io/apiserver/pkg/storage/cacher. A watch
// that nothing reaches for longer than that, not even a bookmark, which comes once a minute, can't go on from where it was: it is answered 410.
const remembers = 75 * time.Second

// idleRound cuts idle connections. Agents watch on from where they were, and nobody lists but where the API server has said that it has forgotten where that
// was; a config still reaches all.
func (s *stage) idleRound() {
	s.t.Helper()
	began, lists, watches, expired, starved := time.Now(), s.calls.listed.Load(), s.calls.watches.Load(), s.calls.expired.Load(), s.proxy.starved.Load()
	unasked := len(s.calls.withoutCause())
	s.proxy.idle.Store(int64(idle))
	defer s.proxy.idle.Store(0)
	s.eventually("every agent's connection was cut twice", func(context.Context) error {
		if n, want := s.proxy.starved.Load()-starved, int64(2*len(s.all())); n < want {
			return fmt.Errorf("%d cuts so far, want %d", n, want)
		}
		return nil
	})
	r := s.publish(false)
	s.turn(r)
	s.brings(r, func() {})
	s.sound()
	lists, watches, starved = s.calls.listed.Load()-lists, s.calls.watches.Load()-watches, s.proxy.starved.Load()-starved
	expired = s.calls.expired.Load() - expired
	forgotten := int64(len(s.all())) * int64(1+time.Since(began)/remembers)
	if without := s.calls.withoutCause()[unasked:]; len(without) > 0 || lists > forgotten {
		s.t.Errorf("%d lists by agents after %d idle connections were cut, of which %d without a word of the API server that it has forgotten where a watch was, want none, and %d at most: "+
			"watches go on from where they were; before those lists %s", lists, starved, len(without), forgotten, strings.Join(without, "; and "))
	}
	if watches == 0 {
		s.t.Errorf("no watch was begun again: nothing is proven")
	}
	s.t.Logf("%d idle connections were cut: %d watches went on, %d were answered 410, %d lists", starved, watches, expired, lists)
}

// nodesAPlace is for how many nodes the narrow API server has a place for a request of each kind. Of a fleet of a thousand that is 10, where the API server has 400 and 200 by default.
const nodesAPlace = 100

// narrowRound has the API server let one request of each kind in at a time for each hundred nodes, while somebody else asks for four times as many. The fleet
// is slowed down, and nothing times out into an action: no node fails, and each is started once, with the new config.
func (s *stage) narrowRound() {
	s.t.Helper()
	places := max(1, len(s.all())/nodesAPlace)
	s.serveWith("--enable-priority-and-fairness=false", fmt.Sprintf("--max-requests-inflight=%d", places), fmt.Sprintf("--max-mutating-requests-inflight=%d", places))
	before, throttled := s.count(), s.calls.throttled.Load()
	noise, quiet := context.WithCancel(s.t.Context())
	go s.noise(noise, 4*places)
	r := s.publish(false)
	s.turn(r)
	s.brings(r, func() {})
	quiet()
	throttled = s.calls.throttled.Load() - throttled
	if throttled == 0 {
		s.t.Errorf("no agent was answered 429: nothing is proven")
	}
	for name, n := range s.count() {
		if n != before[name]+1 {
			s.t.Errorf("node %s was started %d times, want once", name, n-before[name])
		}
	}
	s.t.Logf("%d answers 429 to agents; every node was started once, none has failed", throttled)
	s.serveWith()
	s.sound()
}

// serveWith starts the API server anew with further flags.
func (s *stage) serveWith(flags ...string) {
	s.t.Helper()
	server := s.env.APIServer()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	must(s.t, server.Stop(ctx))
	server.SetFlags(flags...)
	must(s.t, server.Start(ctx))
}

// burst is for how long somebody else asks without a break, after each pause of three to seven times that.
const burst = 150 * time.Millisecond

// noise is somebody else who asks in bursts, so many at a time, and takes the places that there are.
func (s *stage) noise(ctx context.Context, askers int) {
	client := s.noisy()
	for ctx.Err() == nil {
		some, stop := context.WithTimeout(ctx, burst)
		var wg sync.WaitGroup
		for range askers {
			wg.Go(func() {
				for some.Err() == nil {
					_, _ = client.CoreV1().ConfigMaps(metav1.NamespaceAll).List(some, metav1.ListOptions{})
					_, _ = client.CoreV1().Namespaces().Patch(some, metav1.NamespaceDefault, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
				}
			})
		}
		wg.Wait()
		stop()
		s.pause(burst * time.Duration(3+rand.IntN(5)))
	}
}

// figures tells how often each thing was had.
func (s *stage) figures(began time.Time) {
	s.t.Helper()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(s.faults)) {
		lines = append(lines, fmt.Sprintf("%d %s", s.faults[name], name))
	}
	wrong, versions, commits, slots, cordoned := s.audit.report()
	s.t.Logf("%d nodes, %d rounds, %s: %s; %d connections opened, %d idle ones and %d others cut; %d answers 429; "+
		"%d calls by agents, of which %d lists and %d watches; %d handovers; %d freezes over nodes that had left; an agent stops in %s at most; %d attempts; %d versions audited, %d evictions, at most %d slots and %d cordoned nodes, cap %d; violations: %d",
		len(s.all()), s.round, time.Since(began).Round(time.Second), strings.Join(lines, ", "), s.proxy.opened.Load(), s.proxy.starved.Load(), s.proxy.cut.Load(),
		s.calls.throttled.Load(), s.calls.all.Load(), s.calls.lists.Load(), s.calls.watches.Load(), s.handovers, len(s.forgiven), s.slowest.Round(time.Millisecond), commits, versions, s.evictions(), slots, cordoned, s.plan.Cap, len(wrong))
}

// confess tells, of a run that has failed, what the auditor has found and read last, what the nodes wait for that are not done, what the controllers printed last,
// and where their goroutines are: a rollout may stand still for a reason of theirs.
func (s *stage) confess() {
	const most = 256 << 10
	if !s.t.Failed() {
		return
	}
	wrong, _, _, _, _ := s.audit.report()
	s.t.Logf("found: %s\nread last:\n%s", strings.Join(wrong, "\n"), s.audit.last())
	if r := s.fleet.Rollout(); r != nil {
		s.t.Logf("the nodes: %+v", r.Status.Nodes)
	}
	for _, l := range s.controllers {
		text := l.process.Dump()
		s.t.Logf("%s has printed: %s", l.holder, text[max(0, len(text)-most):])
	}
}

// proven ends the controllers, and wants each thing to have been had that is to be proven.
func (s *stage) proven() {
	s.t.Helper()
	for _, l := range s.controllers {
		l.ends(s)
	}
	if missing := struck(s.faults, s.fatal, s.handovers); missing != "" {
		s.t.Errorf("%s: was not had, so it is not proven", missing)
	}
	if _, _, commits, slots, cordoned := s.audit.report(); commits == 0 || slots == 0 || cordoned == 0 {
		s.t.Errorf("%d attempts, %d slots and %d cordoned nodes were seen: nothing is proven", commits, slots, cordoned)
	}
}
