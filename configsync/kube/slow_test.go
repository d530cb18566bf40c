// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kube/internal/matrix"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/lkg"
)

// conditionOf is the ConfigOK condition of the node as it stands on the API server; zero if there is none.
func (c *cluster) conditionOf(t *testing.T) corev1.NodeCondition {
	t.Helper()
	node, err := c.admin.CoreV1().Nodes().Get(deadline(t), c.node, metav1.GetOptions{})
	must(t, err)
	for _, cond := range node.Status.Conditions {
		if cond.Type == "ConfigOK" {
			return cond
		}
	}
	return corev1.NodeCondition{}
}

// brake freezes the API server once it is armed, at the moment that the test is about.
type brake struct {
	server *testenv.Process
	armed  atomic.Bool
	frozen chan error
}

func (b *brake) pull() {
	if b.armed.CompareAndSwap(true, false) {
		b.frozen <- b.server.Pause()
	}
}

// await waits until the server is frozen.
func (b *brake) await(t *testing.T) {
	t.Helper()
	select {
	case err := <-b.frozen:
		must(t, err)
	case <-time.After(time.Minute):
		t.Fatal("the API server was not frozen within a minute")
	}
}

// braked freezes the server between the source's answer and the fetch of what it names.
type braked struct {
	configsync.Fetcher
	*brake
	cut atomic.Int32 // fetches that got no answer
}

// Fetch asks a server that may be frozen.
func (b *braked) Fetch(ctx context.Context, s configsync.Spec) (configsync.Object, error) {
	b.pull()
	o, err := b.Fetcher.Fetch(ctx, s)
	if errors.Is(err, configsync.ErrUnreachable) {
		b.cut.Add(1)
	}
	return o, err
}

// slowNode is a live node with a control plane that can be frozen.
type slowNode struct {
	*liveNode
	*cluster
	*brake
	fetcher *braked
}

// newSlowNode starts one whose calls end after half a second. The brake is pulled by a fetch, or by a start with a
// config that crashes.
func newSlowNode(t *testing.T, inFetch bool) *slowNode {
	t.Helper()
	env := testenv.Start(t, testenv.Options{})
	c := clusterOn(t, env)
	must(t, c.assignNodeConfig(deadline(t), ""))
	source, err := kube.NewNodeConfigSource(c.client, c.node, kube.Options{RetryMax: time.Second})
	must(t, err)
	condition, err := kube.NewNodeConditionReporter(c.client, c.node, kube.Options{})
	must(t, err)
	s := &slowNode{cluster: c, brake: &brake{server: env.APIServer(), frozen: make(chan error, 1)}}
	s.liveNode = c.liveWith(t, source, func(n *liveNode, o *configsync.Options[entry]) {
		o.CallTimeout = 500 * time.Millisecond
		if inFetch {
			s.fetcher = &braked{Fetcher: o.Fetcher, brake: s.brake}
			o.Fetcher = s.fetcher
			return
		}
		n.child.Conduct = func(cfg entry) configsynctest.Conduct {
			if cfg.Payload == matrix.Crashing {
				s.pull()
			}
			return conduct(cfg)
		}
	}, condition)
	return s
}

// told waits until the Node's condition on the API server is that of the node, with that status.
func (s *slowNode) told(t *testing.T, status corev1.ConditionStatus) {
	t.Helper()
	eventually(t, "the Node's condition", func() error {
		got, want := s.conditionOf(t), s.report.Last().Condition
		if got.Status != status || got.Message != want.Message || got.Reason != want.Reason {
			return fmt.Errorf("the Node's condition is %+v, want status %s of %+v", got, status, want)
		}
		return nil
	})
}

// TestSlowServerDuringAdoption freezes the API server while a live node fetches its next config: the node stays where
// it is, says why, and adopts the config once the server goes on. R-CS-16, R-CS-27, R-CS-33.
func TestSlowServerDuringAdoption(t *testing.T) {
	t.Parallel()
	s := newSlowNode(t, true)
	v1 := s.good(t, s.cluster, "v1", matrix.GoodA)
	starts := len(s.child.Starts())
	v2, err := s.Create(deadline(t), matrix.ConfigMap{
		Name: "v2", Immutable: true, Brief: true, Payloads: map[string]matrix.Payload{matrix.Key: matrix.GoodB},
	})
	must(t, err)
	s.armed.Store(true)
	assigned := make(chan error, 1) // the node may be faster than the answer, which then waits for the thaw
	go func() { assigned <- s.assignNodeConfig(deadline(t), v2.Source()) }()
	s.await(t)
	eventually(t, "a fetch without an answer", func() error {
		if n := s.fetcher.cut.Load(); n == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	s.is(t, s.cluster, matrix.Step{Name: "frozen", Node: matrix.Node{
		Active: matrix.GoodA, Status: lkg.StatusUnknown, Good: matrix.GoodA, Error: true,
	}})
	if got := s.child.Starts(); len(got) != starts || got[len(got)-1].UID != v1.UID {
		t.Errorf("the child was started with %+v, want no start since the %d of before", got, starts)
	}
	must(t, s.server.Resume())
	must(t, <-assigned)
	s.is(t, s.cluster, matrix.Step{Name: "thawed", Node: matrix.Node{Active: matrix.GoodB, Status: lkg.StatusTrue, Good: matrix.GoodB}})
	s.told(t, corev1.ConditionTrue)
}

// TestSlowServerDuringRollback freezes the API server at the start of a config that crashes: without it the node goes
// back, tries the config once more after the one below it lived, and lists it. The Node says so once the server goes
// on. R-CS-16, R-CS-39, R-CS-77. L-CS-32.
func TestSlowServerDuringRollback(t *testing.T) {
	t.Parallel()
	s := newSlowNode(t, false)
	v1 := s.good(t, s.cluster, "v1", matrix.GoodA)
	s.armed.Store(true)
	bad, err := s.Create(deadline(t), matrix.ConfigMap{
		Name: "v2", Immutable: true, Brief: true, Payloads: map[string]matrix.Payload{matrix.Key: matrix.Crashing},
	})
	must(t, err)
	assigned := make(chan error, 1) // the node may be faster than the answer, which then waits for the thaw
	go func() { assigned <- s.assignNodeConfig(deadline(t), bad.Source()) }()
	s.await(t)
	eventually(t, "the rollback while the server is frozen", func() error {
		got := s.child.Starts()
		if last := got[len(got)-1]; last.UID != v1.UID {
			return fmt.Errorf("the child was started with %+v last, want %+v", last, v1)
		}
		if listed := s.syncer.Status().Rejected; len(listed) != 1 || listed[0].Ref.UID != bad.UID {
			return fmt.Errorf("rejected are %+v, want %+v alone", listed, bad)
		}
		if got := s.syncer.Status().Condition; got.Status != lkg.StatusFalse {
			return fmt.Errorf("the node says %+v, want status False", got)
		}
		return nil
	})
	must(t, s.server.Resume())
	must(t, <-assigned)
	s.is(t, s.cluster, matrix.Step{Name: "thawed", Node: matrix.Node{Active: matrix.GoodA, Status: lkg.StatusFalse, Good: matrix.GoodA}})
	s.told(t, corev1.ConditionFalse)
	s.good(t, s.cluster, "v3", matrix.GoodB)
	s.told(t, corev1.ConditionTrue)
}
