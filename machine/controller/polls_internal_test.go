// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// R-MA-30: when to ask again is kept for each thing that the provider goes on with, and goes with it.
func TestPollsOfSeveral(t *testing.T) {
	now := time.Unix(1e9, 0)
	p := &pass{c: &Controller{o: Options{Now: func() time.Time { return now }}}, mem: &memory{}, asked: true}
	first := machine.Action{Kind: machine.DestroyRetained, Token: "a"}
	second := machine.Action{Kind: machine.DestroyRetained, Token: "b"}
	says := func(seconds int64) machine.Outcome {
		return machine.Outcome{Progress: provider.Progress{AfterSeconds: seconds}}
	}
	p.pollNext(first, says(300))
	p.pollNext(second, says(90))
	want := map[string]time.Duration{"a": 300 * time.Second, "b": 90 * time.Second}
	for _, poll := range p.polls() {
		if got := poll.At.Sub(now); got != want[poll.Token] {
			t.Errorf("%s is asked again in %s, want %s", poll.Token, got, want[poll.Token])
		}
	}
	if got := len(p.polls()); got != 2 {
		t.Errorf("%d polls are kept, want 2", got)
	}
	p.pollNext(first, says(0))
	if got := p.polls(); len(got) != 1 || got[0].Token != "b" {
		t.Errorf("after the first is done: %+v, want the other one", got)
	}
	p.m.Generation++
	if got := p.polls(); len(got) != 0 {
		t.Errorf("after the spec has changed: %+v, want none", got)
	}
}
