// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/internal/watch/watchtest"
)

// TestInformerDoesNotListAgain: the watch of all Leases goes on from where it was when it ends without a word.
func TestInformerDoesNotListAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watchtest.Thread{Version: "coordination.k8s.io/v1", Kind: "Lease", First: []watchtest.Answer{watchtest.Says(http.StatusOK, "")}}
		client, err := kubernetes.NewForConfig(w.Config())
		if err != nil {
			t.Fatal(err)
		}
		informer, err := identity.NewInformer(client.CoordinationV1().Leases("ns"))
		if err != nil {
			t.Fatal(err)
		}
		stop := watchtest.Runs(t, informer.RunWithContext)
		<-time.After(5 * time.Minute)
		if got, want := w.Asked(), "list, watch 7, watch 7"; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
		stop()
	})
}
