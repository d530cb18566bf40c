// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/internal/watch/watchtest"
	"github.com/belayproject/belay/rollout/kube"
)

// TestAgentDoesNotListAgain covers R-CS-37: an agent's watch of its shadow goes on from where it was when it ends without a word, and so do those of the ledger and of
// all objects of a kind.
func TestAgentDoesNotListAgain(t *testing.T) {
	for name, c := range map[string]struct {
		kind string
		run  func(ctx context.Context, client dynamic.Interface) error
	}{
		"the shadow of a node": {"NodeShadow", func(ctx context.Context, client dynamic.Interface) error {
			return must1(kube.NewOwnShadowCache(client, "n")).Run(ctx, func() {})
		}},
		"all rollouts": {"Rollout", func(ctx context.Context, client dynamic.Interface) error {
			return must1(kube.NewRolloutCache(client)).Run(ctx, func() {})
		}},
		"the ledger": {"DisruptionLedger", func(ctx context.Context, client dynamic.Interface) error {
			return must1(kube.NewLedgerStore(client, "fleet")).Run(ctx, func() {})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &watchtest.Thread{Version: "belay.dev/v1alpha1", Kind: c.kind, First: []watchtest.Answer{watchtest.Says(http.StatusOK, "")}}
				client, err := dynamic.NewForConfig(w.Config())
				if err != nil {
					t.Fatal(err)
				}
				stop := watchtest.Runs(t, func(ctx context.Context) {
					if err := c.run(ctx, client); err != nil {
						t.Error(err)
					}
				})
				<-time.After(5 * time.Minute)
				if got, want := w.Asked(), "list, watch 7, watch 7"; got != want {
					t.Errorf("asked %s, want %s", got, want)
				}
				stop()
			})
		})
	}
}
