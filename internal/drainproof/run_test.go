// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

// A running is a Run of a Drainer in the background, and what it has reported.
type running struct {
	cancel context.CancelFunc
	ended  chan struct{}
	status drain.SetStatus
	err    error

	mu      sync.Mutex
	reports []drain.SetStatus
	first   time.Time // when the first of them came
}

// start runs a set. What is left of it ends with the test.
func start(t *testing.T, d *drain.Drainer, s drain.Set) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.status, r.err = d.Run(ctx, s, func(st drain.SetStatus) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.reports) == 0 {
				r.first = time.Now()
			}
			r.reports = append(r.reports, st)
		})
	}()
	t.Cleanup(func() { cancel(); <-r.ended })
	return r
}

// wait returns what Run has returned.
func (r *running) wait(t *testing.T) (drain.SetStatus, error) {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience()):
		t.Fatalf("Run has not returned after %s; its last report: %s", patience(), inJSON(r.last()))
	}
	return r.status, r.err
}

// all are the reports so far.
func (r *running) all() []drain.SetStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reports[:len(r.reports):len(r.reports)]
}

// heard is when the first report came.
func (r *running) heard() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first
}

func (r *running) last() drain.SetStatus {
	all := r.all()
	if len(all) == 0 {
		return drain.SetStatus{}
	}
	return all[len(all)-1]
}

// reconciled waits until a report is as it should be.
func (r *running) reconciled(t *testing.T, rule string, as func(drain.SetStatus) bool) {
	t.Helper()
	eventually(t, rule, func() error {
		if last := r.last(); !as(last) {
			return fmt.Errorf("the last report is %s", inJSON(last))
		}
		return nil
	})
}

// maintain runs a set to its end, which has to be good.
func maintain(t *testing.T, d *drain.Drainer, s drain.Set, want drain.Phase) drain.SetStatus {
	t.Helper()
	st, err := start(t, d, s).wait(t)
	must(t, err)
	for _, n := range st.Nodes {
		if n.Phase != want {
			t.Fatalf("node %q got phase %q (%s %q), want %q", n.Node, n.Phase, n.Reason, n.Message, want)
		}
	}
	return st
}

// running waits until every pod of the cluster that is not ending runs, and returns how many do.
func (c *cluster) settled(t *testing.T, want int) {
	t.Helper()
	eventually(t, "the pods run", func() error {
		list, err := c.api.CoreV1().Pods(c.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		n := 0
		for _, p := range list.Items {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				n++
			}
		}
		if n != want {
			return fmt.Errorf("%d of %d pods run, want %d", n, len(list.Items), want)
		}
		return nil
	})
}

// evictions picks the evictions, with whom they were for.
func evictions(t *testing.T, events []auditEvent) (all []auditEvent, accepted map[types.UID]int) {
	t.Helper()
	accepted = map[types.UID]int{}
	for _, e := range events {
		if !e.isEviction() {
			continue
		}
		all = append(all, e)
		uid, err := e.target()
		must(t, err)
		if e.ResponseStatus.Code == 201 {
			accepted[uid]++
		}
	}
	return all, accepted
}

// inJSON is for messages: it has all that a status says.
func inJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
