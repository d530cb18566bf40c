// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// Nodes that drain at once do not wait for each other's answers: with a slow API server, 30 of them take as long as
// one does.
func TestNodesThatDrainAtOnceDoNotQueue(t *testing.T) {
	const latency, nodes = 2 * time.Second, 30
	stage(t, draintest.Options{Latency: latency, Termination: time.Second}, nil, func(s *stageTest) {
		var names []string
		for i := range nodes {
			name := fmt.Sprintf("crowd%d", i)
			s.c.AddNode(name)
			s.web(name, 1, name)
			names = append(names, name)
		}
		s.sleep(time.Second)
		began := time.Now()
		set := drain.Set{Request: s.request(""), Groups: [][]string{names}, MaxNodes: intstr.FromString("100%")}
		if st, err := s.d.Run(s.Context(), set, nil); err != nil || !st.Done {
			t.Fatalf("Run: got %+v, %v, want it done", st, err)
		}
		var last time.Time
		for _, call := range s.accepted() {
			if call.Started.After(last) {
				last = call.Started
			}
		}
		if took := last.Sub(began); took > 2*latency {
			t.Errorf("last eviction: got it after %v, want it after its node's cordon alone, within %v", took, 2*latency)
		}
	})
}

// A pod under a budget that never allows an eviction is asked about once in 2 minutes, however slow the server is.
func TestBlockedPodIsAskedAboutOnceInTwoMinutes(t *testing.T) {
	stage(t, draintest.Options{Latency: 3 * time.Second}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		s.c.AddBudget(draintest.MinAvailable("default", "web", "1", map[string]string{"app": "web"}))
		s.sleep(time.Second)
		done := s.run(s.request(""), "n1")
		s.sleep(10 * time.Minute)
		calls := s.evictions()
		s.c.UpdateBudget("default", "web", func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable.IntVal = 0 })
		s.sleep(5 * time.Minute)
		s.drained(done)
		if len(calls) < 2 {
			t.Fatalf("got %d evictions in 10 min, want 2 or more", len(calls))
		}
		for i := range calls[1:] {
			if between := calls[i+1].Started.Sub(calls[i].Started); between < 2*time.Minute {
				t.Errorf("evictions %d and %d: got %v between them, want 2 min or more", i+1, i+2, between)
			}
		}
	})
}
