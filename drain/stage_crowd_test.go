// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"testing"
	"time"

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
