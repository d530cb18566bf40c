// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/identity"
)

// racing renews a Lease just before it is deleted.
type racing struct {
	identity.LeaseClient
	renew func(ctx context.Context, name string) error
}

func (r racing) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if name == "racer" {
		if err := r.renew(ctx, name); err != nil {
			return err
		}
	}
	return r.LeaseClient.Delete(ctx, name, o)
}

// TestCollectorOnAServer has upstream's four cases: expired, fresh, expired without the label, expired with the label in another namespace;
// and one that is renewed after the collector has decided to delete it. R-ID-09, R-ID-10, R-ID-11, R-ID-14.
func TestCollectorOnAServer(t *testing.T) {
	t.Parallel()
	s := onAServer(t)
	abroad := shared.Env(t).Namespace(t)
	s.put(s.namespace, "expired", "agent")
	s.put(s.namespace, "racer", "agent")
	s.put(s.namespace, "bare", "")
	s.put(s.namespace, "fresh", "agent")
	s.put(abroad, "expired", "agent")
	s.live("fresh")
	began := time.Now()
	s.watch(s.leases, s.member("me", "agent"), "agent")
	wrong := s.collector(s.admin.CoordinationV1().Leases(abroad))
	collector := s.collector(racing{s.leases, s.renew})
	outcomes := map[string]identity.CollectOutcome{}
	s.eventually(func() string { // a client of the wrong namespace finds another object under the name
		return s.collectOnce(wrong, outcomes, 2)
	})
	if outcomes["expired"] != identity.Renewed || outcomes["racer"] != identity.Gone || time.Since(began) < realGCAfter {
		t.Errorf("by a client of another namespace: got %v after %v, want nothing deleted, and not before %v", outcomes, time.Since(began), realGCAfter)
	}
	s.wantGone(abroad, "expired", false)
	clear(outcomes)
	s.eventually(func() string { return s.collectOnce(collector, outcomes, 2) })
	if outcomes["expired"] != identity.Collected || outcomes["racer"] != identity.Renewed {
		t.Errorf("got %v, want the expired one collected and the one that raced left", outcomes)
	}
	s.wantGone(s.namespace, "expired", true)
	for _, name := range []string{"racer", "bare", "fresh", "me"} {
		s.wantGone(s.namespace, name, false)
	}
	s.wantGone(abroad, "expired", false)
	s.eventually(func() string {
		if _, there := s.view.Get(keyIn(s.namespace, "expired")); there || s.told("Joined racer") != 1 {
			return "the view does not see the deletion and the renewal"
		}
		return ""
	})
}

func (s *onServer) collector(leases identity.LeaseClient) *identity.Collector {
	s.t.Helper()
	collector, err := identity.NewCollector(leases, s.view, identity.CollectorConfig{GCAfter: realGCAfter})
	s.must(err)
	return collector
}

// collectOnce makes a pass and notes the outcomes, of which it wants n.
func (s *onServer) collectOnce(collector *identity.Collector, outcomes map[string]identity.CollectOutcome, n int) string {
	report, err := collector.Collect(s.ctx)
	if err != nil {
		return err.Error()
	}
	for _, l := range report.Leases {
		outcomes[l.Key.Name] = l.Outcome
	}
	if len(outcomes) < n {
		return fmt.Sprintf("outcomes are %v, want %d", outcomes, n)
	}
	return ""
}
