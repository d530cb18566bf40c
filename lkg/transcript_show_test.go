// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belayproject/belay/lkg"
)

// start records a start and decides.
func (p *player) start(ctx context.Context, arg, more string) ([]string, error) {
	e := lkg.Exit{Kind: map[string]lkg.ExitKind{"crash": lkg.ExitCrash, "clean": lkg.ExitClean}[arg], Detail: more}
	err := p.tracker().Start(ctx, e)
	starts := p.tracker().State().Starts
	last := starts[len(starts)-1]
	out := []string{"start: " + string(last.Cause) + ", " + last.Detail}
	if err != nil {
		out = append(out, "not on record: "+err.Error())
	}
	verdict, err := p.decide(ctx)
	return append(out, verdict...), err
}

func (p *player) decide(ctx context.Context) ([]string, error) {
	v, err := p.tracker().Decide(ctx, p.limitsOf, p.check)
	out := describe(v)
	for _, n := range p.tracker().State().Notices {
		out = append(out, fmt.Sprintf("notice: %s: %v", n.Stream, n.Err))
	}
	return out, err
}

// describe writes a verdict, one fact a line.
func describe(v lkg.Verdict) []string {
	var out []string
	if v.Refuse != nil {
		out = append(out, "REFUSE to start")
	} else {
		use := fmt.Sprintf("use %s (%s)", nameOf(v.Use), v.Role)
		if v.OnTrial {
			use += fmt.Sprintf(", on trial, counted %d, tolerated %d", v.Counted, v.Threshold)
		}
		out = append(out, use)
	}
	out = append(out, "condition "+string(v.Condition.Status)+": "+v.Condition.Message, "because "+v.Condition.Reason)
	if v.Detail != "" && v.Detail != v.Condition.Reason {
		out = append(out, "detail: "+v.Detail)
	}
	if v.NewlyRejected {
		out = append(out, "newly rejected; evidence: "+v.Rejected.Evidence)
	}
	for _, ig := range v.Ignored {
		out = append(out, "ignored: "+ig.Why)
	}
	for _, s := range v.Steps {
		out = append(out, fmt.Sprintf("passed over: %s %s: %s", s.Role, nameOf(s.Ref), s.Why))
	}
	if v.Alarm != "" {
		out = append(out, "ALARM "+v.Alarm)
	}
	return out
}

// report sends a report every ten seconds and shows the last answer.
func (p *player) report(ctx context.Context, failing bool, d time.Duration) ([]string, error) {
	h := lkg.Health{Probes: []lkg.ProbeResult{{Name: "wanted", Err: errors.New("no")}, {Name: "ready", Required: true}}}
	if failing {
		h.Probes[1].Err = errors.New("no")
	}
	var last lkg.Progress
	for d > 0 && last.Result != lkg.ResultPromoted {
		h.Elapsed = min(d, 10*time.Second)
		d -= h.Elapsed
		p.wall = p.wall.Add(h.Elapsed)
		var err error
		if last, err = p.tracker().Healthy(ctx, h); err != nil {
			return nil, err
		}
	}
	word := string(last.Result)
	if last.Result == lkg.ResultIdle {
		word = "Idle"
	}
	return []string{word + ": " + last.Why}, nil
}

// show answers questions about what is stored.
func (p *player) show(word, arg string) ([]string, error) {
	switch word {
	case "settled":
		return []string{fmt.Sprint(lkg.Settled(p.tracker().State()))}, nil
	case "record":
		b, ok := p.store.Records()[arg]
		switch {
		case !ok:
			return []string{"(no record)"}, nil
		case len(b) == 0:
			return []string{"(empty)"}, nil
		}
		return strings.Split(string(b), "\n"), nil
	default:
		p.t.Fatalf("no command %q", word)
		return nil, nil
	}
}
