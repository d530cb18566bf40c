// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// A statusRefuser is a server on which the right to write the status of Nodes is missing.
type statusRefuser struct{ drain.Client }

// PatchNode implements [drain.Client].
func (c statusRefuser) PatchNode(ctx context.Context, name string, patch []byte, status bool) (*corev1.Node, error) {
	if status {
		return nil, apierrors.NewForbidden(corev1.Resource("nodes/status"), name, errors.New("no right to patch"))
	}
	return c.Client.PatchNode(ctx, name, patch, status)
}

// R-DR-08: conditions tell of a drain and hold it up nowhere: without the right to write them the node is drained,
// latched and given back, and an event says what is missing.
func TestDrainGoesOnWithoutTheRightToConditions(t *testing.T) {
	conditions := func(o *drain.Options) { o.NodeConditions, o.Client = true, statusRefuser{o.Client} }
	stage(t, draintest.Options{Termination: time.Second}, conditions, func(s *stageTest) {
		s.web("web", 3, "n1")
		s.sleep(time.Second)
		s.phase(s.request("n1"), time.Minute, drain.Drained)
		s.restart()
		s.wants(s.pass(s.request("n1")), drain.Drained, "", drain.OutcomeDrained)
		s.phase(s.request("n1", func(r *drain.Request) { r.Mode = drain.Release }), time.Minute, drain.Released)
		s.clean("n1")
		if all := s.events.all(); !slices.Contains(all, "Warning ConditionsForbidden") {
			t.Errorf("got the events %v, want one about the right", all)
		}
	})
}

// R-DR-08: two holders that wait for a window on one node do not write their plans over each other's.
func TestTwoPlansOfOneNodeCostTwoWrites(t *testing.T) {
	stage(t, draintest.Options{}, func(o *drain.Options) { o.NodeConditions = true }, func(s *stageTest) {
		later := func(holder string) drain.Request {
			return s.request("n1", func(r *drain.Request) {
				r.Holder = holder
				r.Policy.Windows = []drain.Window{{From: time.Now().Add(time.Hour)}}
			})
		}
		a, b := later("a"), later("b")
		for range 20 {
			s.pass(a)
			s.pass(b)
			s.sleep(time.Second)
		}
		if n := len(s.writes()); n > 2 {
			t.Errorf("got %d writes of the node, want at most two", n)
		}
	})
}
