// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/belayproject/belay/drain"
)

// Waiting alone helps while a node can go on, or when nothing is waited for any more.
func TestStuckMeansThatWaitingAloneDoesNotHelp(t *testing.T) {
	blocked := drain.Status{Phase: drain.Draining, Outcome: drain.OutcomeBlocked}
	for _, c := range []struct {
		set  drain.SetStatus
		want bool
	}{
		{drain.SetStatus{Nodes: []drain.Status{blocked, {Phase: drain.Pending}, {Phase: drain.Drained}, {Phase: drain.Failed}}}, true},
		{drain.SetStatus{Nodes: []drain.Status{blocked, {Phase: drain.Draining}}}, false},
		{drain.SetStatus{Nodes: []drain.Status{blocked, {Phase: drain.Settling}}}, false},
		{drain.SetStatus{Nodes: []drain.Status{{Phase: drain.Pending}}}, false},
		{drain.SetStatus{Nodes: []drain.Status{blocked}, Done: true}, false},
	} {
		if got := Stuck(c.set); got != c.want {
			t.Errorf("Stuck(%+v): got %v, want %v", c.set, got, c.want)
		}
	}
}
