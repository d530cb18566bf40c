// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// short bounds a call of these tests.
const short = 100 * time.Millisecond

// served is a cluster whose API server is a function.
func served(t *testing.T, serve http.HandlerFunc) *Cluster {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	c, err := Of(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	c.callTime = short
	return c
}

// hang never answers. That the other side is gone is noticed once what it has sent was read.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// No call to an API server that does not answer lasts for ever.
func TestCallsHaveAnEnd(t *testing.T) {
	t.Parallel()
	c := served(t, hang)
	r := &v1alpha1.Rollout{}
	r.Name = "fleet"
	for name, call := range map[string]func(context.Context) error{
		"a ConfigMap":   func(ctx context.Context) error { _, err := c.Config(ctx, "n", "m"); return err },
		"the budgets":   func(ctx context.Context) error { _, err := c.budgets(ctx); return err },
		"a definition":  func(ctx context.Context) error { _, err := c.get(ctx, crdResource, "x"); return err },
		"a Lease":       func(ctx context.Context) error { return c.lease(ctx, "d", Target{Namespace: "n"}).Err },
		"the Rollouts":  func(ctx context.Context) error { _, err := c.Rollouts(ctx); return err },
		"asking for it": func(ctx context.Context) error { return c.Ask(ctx, r, v1alpha1.Verb{Request: "r", Do: "Pause"}) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("%s: %v, want that its own deadline is over", name, err)
		}
		cancel()
	}
}

// An API server that is away, or does not answer, is waited for, and each try that fails is told.
func TestFollowTellsOfAnOutage(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		switch asked.Add(1) {
		case 1:
			hang(w, r)
		case 2:
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"apiVersion":"belay.dev/v1alpha1","kind":"Rollout","metadata":{"name":"fleet","resourceVersion":"7"}}`)
		}
	})
	c.callTime = 5 * time.Second // A good answer that takes longer than short, on a busy machine, would be told as a third failure.
	var told []string
	err := c.Follow(t.Context(), "fleet", func(r *v1alpha1.Rollout) bool { return r.Name == "fleet" }, func(err error) { told = append(told, err.Error()) })
	if err != nil || len(told) != 2 || !strings.Contains(told[0], "deadline") || !strings.Contains(told[1], "reading rollout \"fleet\"") {
		t.Errorf("following has ended with %v and told of %q, want two tries that have failed, and no error", err, told)
	}
}
