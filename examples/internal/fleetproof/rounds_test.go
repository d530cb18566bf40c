// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/internal/rollouts"
	"github.com/belayproject/belay/examples/internal/scenario"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// fatal is how the name of a config begins that ends the process of a node that has swap.
const fatal = "fatal-"

// publish makes a config that no round before had.
func (s *stage) publish(kills bool) rollouts.Revision {
	s.t.Helper()
	s.round++
	s.left = map[string]bool{}
	name := fmt.Sprintf("good-%d", s.round)
	if kills {
		name = fmt.Sprintf(fatal+"%d", s.round)
	}
	data := map[string]string{
		kubelet.Key:                 fmt.Sprintf("%sfailSwapOn: %t\nmaxPods: %d\n", scenario.Head, kills, 100+s.round),
		configsync.KeyTrialDuration: "1s", configsync.KeyCrashLoopThreshold: fmt.Sprint(forgiven),
	}
	var r rollouts.Revision
	s.does("a config is published", func(ctx context.Context) (err error) {
		r, err = s.fleet.Publish(ctx, name, data)
		return err
	})
	return r
}

// turn has the fleet brought to a revision.
func (s *stage) turn(r rollouts.Revision) {
	s.t.Helper()
	s.does("the rollout is asked for", func(ctx context.Context) error {
		if s.fleet.Rollout() == nil {
			return s.fleet.Begin(ctx, r, s.plan)
		}
		return s.fleet.Turn(ctx, r)
	})
}

// status is that of the Rollout once it is about a revision.
func (s *stage) status(r rollouts.Revision) (*v1alpha1.RolloutStatus, error) {
	now := s.fleet.Rollout()
	if now == nil || now.Status.ObservedGeneration != now.Generation || now.Status.Revision == nil || *now.Status.Revision != r {
		return nil, errors.New("the controller has not looked at it")
	}
	return &now.Status, nil
}

// brings waits until every node runs a good config, and calls meanwhile again and again.
func (s *stage) brings(r rollouts.Revision, meanwhile func()) {
	s.t.Helper()
	s.eventually("every node runs "+r.Name, func(context.Context) error {
		meanwhile()
		s.staff()
		st, err := s.status(r)
		if err != nil {
			return err
		}
		if st.Failed > 0 {
			s.t.Fatalf("E24: %d nodes have failed with %s, which is good: %s; %s", st.Failed, r.Name, st.Message, s.failures())
		}
		s.forgives(st)
		if n, of := s.runs(r.Name), len(s.all()); rollout.Phase(st.Phase) != rollout.Completed || n != of || len(s.fleet.Away()) > 0 {
			return fmt.Errorf("%d of %d do, it is %s: %s", n, of, st.Phase, st.Message)
		}
		return nil
	})
	s.good = r.Name
}

// failures tells what the nodes say of themselves whose last attempt has failed.
func (s *stage) failures() string {
	s.t.Helper()
	client, err := dynamic.NewForConfig(s.env.Config())
	must(s.t, err)
	all := []string{}
	stored, err := kube.NewShadows(client)
	must(s.t, err)
	s.does("the nodes that have failed say why", func(ctx context.Context) error {
		shadows, err := stored.List(ctx)
		for _, sh := range shadows {
			st := sh.Status
			if st.Phase == v1alpha1.Phase(protocol.PhaseFailedClean) || st.Phase == v1alpha1.Phase(protocol.PhaseFailedBroken) {
				all = append(all, fmt.Sprintf("%s is %s in attempt %d of %v, %s: %s", sh.Name, st.Phase, st.Attempt, st.Revision, st.Reason, st.Message))
			}
		}
		return err
	})
	return strings.Join(all, "; ")
}

// hurt counts the nodes that a config has broken. The error is that one of them does not run the good one again.
func (s *stage) hurt(digest string) (broken int, err error) {
	for _, a := range s.all() {
		if !a.crashed(digest) {
			continue
		}
		broken++
		if now, ok := a.crowd().Runs(a.name); !ok || now != s.good {
			return broken, fmt.Errorf("node %s was broken and does not run %s", a.name, s.good)
		}
	}
	return broken, nil
}

// stops waits until a fatal config has stopped by itself, and checks that it broke no more nodes than was said before
// (R-RO-28).
func (s *stage) stops(r rollouts.Revision, meanwhile func()) (broken int, bound int64) {
	s.t.Helper()
	bound = -1
	s.eventually(r.Name+" stops by itself", func(context.Context) error {
		meanwhile()
		s.staff()
		st, err := s.status(r)
		if err != nil {
			return err
		}
		if bound < 0 && st.WorstCase != nil {
			bound = st.WorstCase.Broken
		}
		if rollout.Phase(st.Phase) != rollout.Frozen || !st.Acknowledged || len(s.fleet.Away()) > 0 {
			return fmt.Errorf("it is %s: %s", st.Phase, st.Message)
		}
		if broken, err = s.hurt(r.Digest); err == nil && broken == 0 && lostAlone(st, s.left) {
			s.forgives(st)
			err = fmt.Errorf("it has stopped over nodes that have left: %s", st.Message)
		}
		return err
	})
	if n := s.swapping(); int64(n) <= bound {
		s.t.Errorf("%d nodes have swap, and %s may break %d: the bound can't fail, nothing is proven", n, r.Name, bound)
	}
	if broken == 0 || int64(broken) > bound {
		s.t.Errorf("R-RO-28, E23: %s has broken %d nodes, the status has said before that it can break %d", r.Name, broken, bound)
	}
	return broken, bound
}

// sound checks what must hold whenever no rollout is under way: E18, every node was given back, without a mark; the
// agents live; and what no version may show.
func (s *stage) sound() {
	s.t.Helper()
	s.does("every node is given back", func(ctx context.Context) error {
		nodes, err := s.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range nodes.Items {
			if err := kept(&nodes.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	for _, a := range s.all() {
		if err := errors.Join(a.alive(), a.wrong()); err != nil {
			s.t.Error(err)
		}
	}
	s.staff()
	s.looked()
	wrong, _, _, _, _ := s.audit.report()
	for _, w := range wrong {
		s.t.Error(w)
	}
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// kept is an error if a node was not given back.
func kept(n *corev1.Node) error {
	_, held := n.Annotations[controller.HeldAnnotation]
	_, marked := n.Annotations[controller.ScaleDownAnnotation]
	if held || marked || n.Spec.Unschedulable {
		return fmt.Errorf("E18: node %s was not given back: unschedulable %t, held %t, marked for the autoscaler %t", n.Name, n.Spec.Unschedulable, held, marked)
	}
	return nil
}

// swapping is how many nodes a fatal config breaks where nothing stops it.
func (s *stage) swapping() (n int) {
	for _, a := range s.all() {
		if a.swap {
			n++
		}
	}
	return n
}

// pause waits, or until the test ends.
func (s *stage) pause(d time.Duration) {
	select {
	case <-s.t.Context().Done():
	case <-time.After(d):
	}
}
