// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/belayproject/belay/lkg"
)

// The configs of a history, beside the local one.
var (
	candidate = lkg.Ref{
		Namespace: "fleet", Name: "candidate", UID: "uid-candidate", Key: "kubelet", Digest: "sha256:candidate",
	}
	before = lkg.Ref{Namespace: "fleet", Name: "before", UID: "uid-before", Key: "kubelet", Digest: "sha256:before"}
	older  = lkg.Ref{Namespace: "fleet", Name: "older", UID: "uid-older", Key: "kubelet", Digest: "sha256:older"}
)

// A tale is how often one config was left for what it did itself, since something else ended a run of another config:
// that may have been taken for a proof that it is not to blame.
type tale struct {
	deaths int // ends of its own, to whoever looks
	boots  int // boots, and deaths of the agent, that it brought about
	sick   int // it was left because a required probe failed
}

// An account is what a history knows of itself. It does not know how a rule counts.
type account struct {
	tales      map[content]*tale
	kept       string        // how a bad config was kept for too long
	worst      int           // the most deaths of one config since something else ended a run of another
	blamed     string        // how a good config was listed
	listed     int           // how many entries the list of bad configs had
	healthy    time.Duration // without a break, in the present run
	all        int           // starts
	starts     int           // since nothing breaks any more
	alive      bool          // in the end, what runs is ready
	lastEnd    *int          // what the last end was added to
	unrecorded bool          // the present start is not on record
	over       bool          // the history is
}

func taleOf(l *life, r lkg.Ref) *tale {
	t := l.tales[of(r)]
	if t == nil {
		t = &tale{}
		l.tales[of(r)] = t
	}
	return t
}

// countEnd adds one end of its own to what is told of the config in use. An end counts if its run is on record, and the
// start after it as well.
func countEnd(l *life, count *int) {
	if l.unrecorded {
		return
	}
	*count++
	l.lastEnd = count
}

// countNewStart takes the last end back if the start after it is not on record.
func countNewStart(l *life, recorded bool) {
	if l.lastEnd != nil && !recorded {
		*l.lastEnd = max(*l.lastEnd-1, 0)
	}
	l.lastEnd, l.unrecorded = nil, !recorded
	l.worst = max(l.worst, taleOf(l, l.v.Use).deaths)
}

// noteDisturbed notes that something from outside ended the run. It may clear every other config of what it did.
func noteDisturbed(l *life) {
	for k, t := range l.tales {
		if k != of(l.v.Use) {
			*t = tale{}
		}
	}
}

// mostDeaths is how often a config may be tried at most that ends in a way of which n are tolerated: until they are
// exceeded, and as often again after a config below it lived.
func mostDeaths(n int) int { return 2 * (n + 1) }

// noteUsed notes that a config is used again.
func noteUsed(l *life) {
	t, n := taleOf(l, l.v.Use), l.limits.CrashLoopThreshold
	if !l.v.OnTrial {
		n = max(n, tolerated)
	}
	if l.poison.to > 0 {
		return // nothing tells how long it spoils the node
	}
	switch {
	case l.v.Use.IsLocal():
	case t.deaths >= mostDeaths(n) && l.v.Use.Same(candidate), t.deaths >= mostDeaths(n)+n+1:
		l.kept = fmt.Sprintf("%s is used again after %d deaths, tolerated: %d", nameOf(l.v.Use), t.deaths, n)
	case t.boots >= mostDeaths(tolerated) && l.plot.world:
		l.kept = fmt.Sprintf("%s is used again after %d boots or deaths of the agent", nameOf(l.v.Use), t.boots)
	case t.sick >= 2:
		l.kept = fmt.Sprintf("%s is used again after it was left %d times for a probe", nameOf(l.v.Use), t.sick)
	}
}

// isGoodConfig reports whether a config is good now.
func isGoodConfig(l *life, r lkg.Ref) bool {
	p := &l.plot
	switch {
	case r.Same(candidate):
		return p.temper == sound || p.temper == breaksLater && l.now < p.breaks
	case r.Same(before):
		return !p.shared || l.now < p.breaks
	default:
		return true
	}
}

// noteListing notes which configs are listed as bad.
func noteListing(l *life) {
	bad := l.tr.State().Bad
	for _, b := range bad[min(l.listed, len(bad)):] {
		l.tell("%s is listed as bad: %s", nameOf(b.Ref), b.Reason)
		if isGoodConfig(l, b.Ref) {
			l.blamed = fmt.Sprintf("%s is good and was listed: %s", nameOf(b.Ref), b.Reason)
		}
	}
	l.listed = len(bad)
}

// isCalmNow reports whether nothing comes from outside any more.
func isCalmNow(l *life) bool {
	return l.now >= l.plot.calmTime() && l.plot.events+l.plot.noise == 0
}

// patienceOf is how long a run that nothing ends is waited for: a witness of more than an hour is never needed, but
// against boots and deaths of the agent.
func patienceOf(l *life) time.Duration {
	few := 3*(l.limits.Trial+l.limits.ProbeDeadline) + 16*l.limits.MinHealthyRun + 10*time.Minute
	return max(few, 70*time.Minute)
}

// wantedRef is the config that has to run in the end.
func wantedRef(l *life, s *lkg.State) lkg.Ref {
	for _, r := range []lkg.Ref{candidate, s.LastKnownGood, s.Previous} {
		if isGoodConfig(l, r) {
			return r
		}
	}
	return lkg.Ref{}
}

// finishLife compares what runs in the end, and what is on record, with what has to.
func finishLife(ctx context.Context, l *life) (broken map[string]string, err error) {
	s, err := lkg.Load(ctx, l.store, "v1")
	if err != nil {
		return nil, err
	}
	promoted := s.LastKnownGood.Same(candidate)
	broken = map[string]string{}
	judgeGoodConfigs(l, promoted, broken)
	judgeBadConfigs(l, promoted, broken)
	judgeLastRun(l, wantedRef(l, &s), broken)
	return broken, nil
}

// judgeGoodConfigs notes in broken what happened to a good config that must not.
func judgeGoodConfigs(l *life, promoted bool, broken map[string]string) {
	switch {
	case l.blamed != "" && l.plot.world:
		broken[goodBlamed] = l.blamed
	case l.blamed != "":
		broken[goodRejected] = l.blamed
	case l.plot.isGood() && !promoted && l.alive && l.v.Use.Same(candidate):
		broken[goodUnproven] = "a good config was not promoted"
	}
}

// judgeBadConfigs notes in broken that a bad config was kept for too long, or promoted.
func judgeBadConfigs(l *life, promoted bool, broken map[string]string) {
	if l.kept != "" {
		broken[badKept] = l.kept
	}
	switch l.plot.temper {
	case sound, breaksLater:
	default:
		if promoted {
			broken[badPromoted] = "a bad config was promoted: it " + l.plot.String()
		}
	}
}

// judgeLastRun notes in broken that another config runs in the end than the one that has to, or none.
func judgeLastRun(l *life, want lkg.Ref, broken map[string]string) {
	switch {
	case l.plot.temper == panics && !l.plot.world:
	case l.plot.temper == seldomReady || l.plot.temper == neverReady && l.v.Use.Same(candidate):
	case !l.alive:
		broken[neverBack] = fmt.Sprintf("no config lives in the end, and %q would", nameOf(want))
	case l.plot.temper == breaksLater && l.now >= l.plot.breaks && (l.v.Use.Same(candidate) || l.v.Use.Same(before)):
		// what breaks at its next start runs on
	case !l.v.Use.Same(want):
		broken[neverBack] = fmt.Sprintf("%q runs in the end, and not %q", nameOf(l.v.Use), nameOf(want))
	}
}

func nameOf(r lkg.Ref) string {
	if r.IsLocal() {
		return "local"
	}
	return strings.TrimPrefix(r.UID, "uid-")
}
