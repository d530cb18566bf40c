// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/belayproject/belay/lkg"
)

// BlameByCount is the rule that package lkg had first: each end that nothing explains counts against the config that
// ran, a config on trial is rejected on the count alone, whatever the configs below it do, a fallback that crashed is
// not used again before there is a new last known good config, and a promoted config is never left.
func BlameByCount() Rule {
	return Rule{"blame by count, trust for ever", func(ctx context.Context, s lkg.Store, o lkg.Options) (Tracker, error) {
		b := &blaming{store: s, boot: o.BootID}
		if payload, err := s.Get(ctx, blameStream); err == nil {
			_ = json.Unmarshal(payload, &b.blames)
		}
		o.BootID = ""
		var err error
		b.Tracker, err = lkg.NewTracker(ctx, s, o)
		return b, err
	}}
}

const blameStream = "blame"

// Blames is the record of that rule.
type blames struct {
	Boot   string         `json:"boot"`
	Role   lkg.Role       `json:"role"`
	Used   string         `json:"used"`
	Counts map[string]int `json:"counts"`
}

// blaming is a tracker that counts by itself: the one inside sees only the ends that are tolerated.
type blaming struct {
	*lkg.Tracker
	store   lkg.Store
	boot    string
	healthy time.Duration // of the fallback in use
	limits  lkg.Limits
	blames
}

// countKey names the count of a config: on trial for its assignment, as a fallback for as long as the last known good
// config stays.
func (b *blaming) countKey(s *lkg.State, role lkg.Role, uid string) string {
	if role == lkg.RoleCurrent {
		return "trial " + s.Current.ID
	}
	return fmt.Sprintf("fallback %q since %q", uid, s.GoodID)
}

func (b *blaming) Start(ctx context.Context, e lkg.Exit) error {
	s := b.State()
	e.Fault, e.Signature, e.Witnessed, e.Last = "", "", false, nil
	planned := s.Marker != nil && s.Marker.ID != s.Consumed
	counts := !planned && b.boot == b.Boot && e.Kind != lkg.ExitPlanned && e.Kind != lkg.ExitCounted && b.Role != ""
	if counts {
		if b.Counts == nil {
			b.Counts = map[string]int{}
		}
		b.Counts[b.countKey(&s, b.Role, b.Used)]++
	}
	if !counts || b.Role != lkg.RoleCurrent || !s.OnTrial() {
		e.Kind = lkg.ExitPlanned
	}
	b.Boot, b.healthy = b.boot, 0
	return b.Tracker.Start(ctx, e)
}

func (b *blaming) Decide(
	ctx context.Context, limits func(lkg.Ref) lkg.Limits, check func(lkg.Ref) lkg.Check,
) (lkg.Verdict, error) {
	s := b.State()
	b.limits = (lkg.Bounds{}).Clamp(limits(s.Current.Ref))
	if n := b.Counts[b.countKey(&s, lkg.RoleCurrent, "")]; s.OnTrial() && n > b.limits.CrashLoopThreshold {
		if err := b.Reject(ctx, s.Current.Ref,
			fmt.Sprintf("%d unexplained restarts, tolerated: %d", n, b.limits.CrashLoopThreshold)); err != nil {
			return lkg.Verdict{}, err
		}
	}
	v, err := b.Tracker.Decide(ctx, limits, check)
	if v.Role != lkg.RoleCurrent && v.Refuse == nil {
		b.stepDown(&s, &v)
	}
	b.Role, b.Used = v.Role, v.Use.UID
	if err != nil {
		return v, err
	}
	payload, err := json.Marshal(b.blames)
	if err != nil {
		return v, err
	}
	return v, b.store.Put(ctx, blameStream, payload)
}

// stepDown passes over fallbacks that crashed too often.
func (b *blaming) stepDown(s *lkg.State, v *lkg.Verdict) {
	for _, f := range []struct {
		role lkg.Role
		ref  lkg.Ref
	}{{lkg.RoleLastKnownGood, s.LastKnownGood}, {lkg.RolePrevious, s.Previous}} {
		n := b.Counts[b.countKey(s, f.role, f.ref.UID)]
		if !f.ref.IsLocal() && !f.ref.Same(s.Current.Ref) && n <= max(b.limits.CrashLoopThreshold, tolerated) {
			v.Role, v.Use = f.role, f.ref
			return
		}
	}
	v.Role, v.Use = lkg.RoleLocal, lkg.Ref{}
}

func (b *blaming) Healthy(ctx context.Context, h lkg.Health) (lkg.Progress, error) {
	s := b.State()
	if b.Role != lkg.RoleCurrent {
		b.settle(&s, h)
		return lkg.Progress{}, nil
	}
	if !s.OnTrial() {
		return lkg.Progress{}, nil
	}
	p, err := b.Tracker.Healthy(ctx, h)
	switch p.Result {
	case "", "Wait", lkg.ResultPromoted, lkg.ResultRejected:
		return p, err
	}
	err = b.Reject(ctx, s.Current.Ref, p.Why)
	p.Result = lkg.ResultRejected
	return p, err
}

// settle forgives the crashes of a fallback that was healthy for a whole trial.
func (b *blaming) settle(s *lkg.State, h lkg.Health) {
	for _, p := range h.Probes {
		if p.Required && p.Err != nil {
			b.healthy = 0
			return
		}
	}
	if b.healthy += h.Elapsed; b.healthy > b.limits.Trial {
		delete(b.Counts, b.countKey(s, b.Role, b.Used))
	}
}
