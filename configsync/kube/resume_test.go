// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/internal/watch/watchtest"
)

// TestSourceDoesNotListAgain covers R-CS-37: the watch of a source goes on from where it was when it ends without a word.
func TestSourceDoesNotListAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watchtest.Thread{First: []watchtest.Answer{watchtest.Says(http.StatusOK, "")}}
		source, err := kube.NewNodeConfigSource(clientFor(t, w.Config()), "n", kube.Options{})
		must(t, err)
		stop := watchtest.Runs(t, func(ctx context.Context) { must(t, source.Watch(ctx, func() {})) })
		<-time.After(5 * time.Minute)
		if got, want := w.Asked(), "list, watch 7, watch 7"; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
		stop()
	})
}
