// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// A silentClient returns neither a Node nor an error.
type silentClient struct{ drain.Client }

func (silentClient) GetNode(context.Context, string) (*corev1.Node, error) { return nil, nil }

func (silentClient) PatchNode(context.Context, string, []byte, bool) (*corev1.Node, error) {
	return nil, nil
}

// TestNoNodeAndNoErrorIsNoAnswer shows that a Client which returns neither a Node nor an error is not taken for a
// server that has nothing on the Node: each pass fails, and no pod is evicted.
func TestNoNodeAndNoErrorIsNoAnswer(t *testing.T) {
	silence := func(o *drain.Options) { o.Client = silentClient{o.Client} }
	stage(t, draintest.Options{}, silence, func(s *stageTest) {
		s.c.AddWorkload(draintest.Workload{Namespace: "default", Name: "web", Replicas: 1, On: []string{"n1"}})
		s.sleep(time.Minute)
		for _, mode := range []drain.Mode{drain.Drain, drain.Cordon} {
			r := s.request("n1", func(r *drain.Request) { r.Mode = mode })
			_, _, err := s.d.ReconcileRequest(s.Context(), r)
			if err == nil || !strings.Contains(err.Error(), "neither a Node nor an error") {
				s.Errorf("%s: got error %v, want one that says that the Client gave no answer", mode, err)
			}
		}
		if calls := s.c.Log(draintest.Evict); len(calls) != 0 {
			s.Errorf("got %v, want no eviction", calls)
		}
	})
}
