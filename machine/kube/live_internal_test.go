// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/machine"
)

// R-MA-30: those who ask for the Nodes at once share a list, which was begun after each of them has asked, and one is made at a time; who goes away spoils it for nobody.
func TestLiveListsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lists
		made, atOnce, begun := 0, 0, map[string]time.Time{}
		list := func(ctx context.Context) (map[string][]machine.Node, error) {
			if made++; atOnce > 0 {
				t.Error("two lists at once")
			}
			atOnce++
			at := time.Now()
			<-time.After(time.Second)
			atOnce--
			return map[string][]machine.Node{at.String(): nil}, ctx.Err()
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		ask := func(name string, ctx context.Context, wrong error) {
			wg.Go(func() {
				asked := time.Now()
				nodes, err := l.share(ctx, list)
				if !errors.Is(err, wrong) || wrong == nil && err != nil {
					t.Errorf("%s: %v", name, err)
				}
				mu.Lock()
				defer mu.Unlock()
				for at := range nodes {
					begun[name] = asked
					if at < asked.String() {
						t.Errorf("R-MA-30: %s asked at %s and has a list of %s", name, asked, at)
					}
				}
			})
			synctest.Wait()
		}
		first, leave := context.WithCancel(t.Context())
		ask("first", t.Context(), nil)
		<-time.After(100 * time.Millisecond)
		ask("leaves", first, nil) // it makes the next list, for the others too
		for range 20 {
			ask("joins", t.Context(), nil)
			<-time.After(10 * time.Millisecond)
		}
		gone, stop := context.WithCancel(t.Context())
		ask("gone", gone, context.Canceled)
		stop()
		leave()
		wg.Wait()
		if made != 2 || len(begun) != 3 {
			t.Errorf("R-MA-30: %d lists were made for 23 calls, want 2; %v", made, begun)
		}
		ask("later", t.Context(), nil)
		if wg.Wait(); made != 3 {
			t.Errorf("R-MA-30: a list that has ended was used again")
		}
	})
}
