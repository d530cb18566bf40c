// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/evictionapi"
)

var errKilled = errors.New("the process was killed")

// A killer ends a process at one of its writes: from then on no request of it is sent. Where after is set the API
// server has carried out that write, and the process does not learn it.
type killer struct {
	next http.RoundTripper

	mu        sync.Mutex
	countdown int
	after     bool
	dead      chan struct{}
	evictions int
}

func (k *killer) RoundTrip(r *http.Request) (*http.Response, error) {
	now, dead := k.count(r)
	if dead || now && !k.after {
		return nil, errKilled
	}
	response, err := k.next.RoundTrip(r)
	if now && err == nil {
		return nil, errors.Join(errKilled, response.Body.Close())
	}
	return response, err
}

func (k *killer) count(r *http.Request) (now, dead bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.countdown == 0 {
		return false, true
	}
	if r.Method != http.MethodGet {
		if strings.HasSuffix(r.URL.Path, "/eviction") {
			k.evictions++
		}
		if k.countdown--; k.countdown == 0 {
			close(k.dead)
			return true, false
		}
	}
	return false, false
}

// A process is killed at each of its writes, before it is sent and after; the next process goes on. In the end there is
// one Eviction, its conditions are copied, and the pod was evicted.
func TestKilledAtEachWrite(t *testing.T) {
	t.Parallel()
	if newBed(t) == nil {
		return
	}
	const most = 12
	killed := map[bool]*[most + 1]bool{false: {}, true: {}}
	t.Run("writes", func(t *testing.T) {
		for after, at := range killed {
			for i := 1; i <= most; i++ {
				name := fmt.Sprintf("web-%d-%v", i, after)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					at[i] = newBed(t).surviveKill(name, i, after)
				})
			}
		}
	})
	for after, at := range killed {
		if !at[6] || at[most] {
			t.Errorf("a whole eviction takes 6 to %d writes; the kills came at %v (after %v)", most-1, *at, after)
		}
	}
}

// surviveKill reports whether the process was killed: it makes fewer writes otherwise.
func (b *bed) surviveKill(name string, at int, after bool) (killed bool) {
	b.t.Helper()
	pod := b.pod(name, func(spec map[string]any) { spec["terminationGracePeriodSeconds"] = int64(0) })
	k := &killer{countdown: at, after: after, dead: make(chan struct{})}
	config := b.env.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { k.next = next; return k })
	first := b.run(config, true)
	b.request(name, "acme.io/a", pod)
	done := func() error { return b.isEvicted(name, pod) }
	b.wait(func() error {
		select {
		case <-k.dead:
			killed = true
			return nil
		default:
			return done()
		}
	})
	first.stop()
	if !killed {
		return false
	}
	second := b.run(rest.CopyConfig(b.env.Config()), true)
	b.wait(done)
	second.stop()
	return true
}

// isEvicted returns nil once everything is as it has to be in the end.
func (b *bed) isEvicted(name string, pod drain.PodRef) error {
	r, err := b.getRequest(name)
	if err != nil {
		return err
	}
	all, err := b.of(pod)
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return fmt.Errorf("%d Evictions: %s", len(all), describe(all))
	}
	return errors.Join(
		hasReason(r.Status.Conditions, evictionapi.ConditionTargetEvicted, evictionapi.ReasonPodDeleted),
		hasReason(r.Status.Conditions, evictionapi.ConditionFailed, evictionapi.ReasonSucceeded),
		hasReason(all[0].Status.Conditions, evictionapi.ConditionTargetEvicted, evictionapi.ReasonPodDeleted),
	)
}
