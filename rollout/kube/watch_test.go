// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
)

// A gate refuses all requests while it is shut, as an API server does whose rights were taken away, and ends those that are under way.
type gate struct {
	next http.RoundTripper
	mu   sync.Mutex
	shut bool
	end  []context.CancelFunc
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	g.mu.Lock()
	shut := g.shut
	g.end = append(g.end, cancel)
	g.mu.Unlock()
	if shut {
		const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not for you"}`
		return &http.Response{
			StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(status)), Request: r,
		}, nil
	}
	return g.next.RoundTrip(r.WithContext(ctx))
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	for _, end := range g.end {
		end()
	}
	g.end = nil
}

// A cache and a ledger say that their watch is refused, after they have seen all once, and that it has come back.
func TestRefusedWatch(t *testing.T) {
	b := newBed(t)
	g, config := &gate{}, b.env.Config()
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { g.next = next; return g })
	client := dynamic.NewForConfigOrDie(config)
	shadows, ledger := must1(kube.NewShadowCache(client)), must1(kube.NewLedgerStore(client, "gated"))
	checks := map[string]func() error{"nodeshadows": shadows.Check, "disruptionledgers": ledger.Check}
	wantLag(t, "before the start", checks, false)
	for _, run := range []func(context.Context, func()) error{shadows.Run, ledger.Run} {
		go func() { _ = run(t.Context(), func() {}) }()
	}
	well := func() error { return errors.Join(shadows.Check(), ledger.Check()) }
	b.eventually("all is seen", b.now(well))
	g.set(true)
	b.eventually("both are refused", b.now(func() error {
		for resource, check := range checks {
			if err := check(); !apierrors.IsForbidden(err) {
				return fmt.Errorf("check of %s: got %w, want that it is forbidden", resource, err)
			}
		}
		return nil
	}))
	wantLag(t, "while refused", checks, true)
	g.set(false)
	_, err := b.shadows.Create(b.ctx(), protocol.NewShadow("gated-1", b.uid("gated-1"), protocol.Ledger{Epoch: 1}))
	b.must(err)
	_, err = must1(kube.NewLedgerStore(b.client, "gated")).Store(b.ctx(), protocol.Ledger{Epoch: 1}, "")
	b.must(err)
	b.eventually("both have come back", b.now(well))
	b.eventually("what was missed is seen", b.now(func() error {
		if _, there := shadows.Get("gated-1"); !there {
			return errors.New("the shadow is not there")
		}
		return nil
	}))
}

// A watch counts as refused as long as the informer is refused again and again, and no more once it hears of something or has had no trouble for
// two minutes.
func TestWatchThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &scripted{version: 1}
		informer := cache.NewSharedIndexInformer(w.listWatch(), &corev1.ConfigMap{}, 0, cache.Indexers{})
		check, err := kube.NoteWatchErrors(informer, "configmaps")
		if err != nil {
			t.Fatal(err)
		}
		wants := func(when, text string) {
			t.Helper()
			synctest.Wait()
			if err := check(); (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%s: got %v, want %q", when, err, text)
			}
		}
		wants("before the start", "watch of configmaps has not seen all yet")
		go informer.RunWithContext(t.Context())
		wants("once all is seen", "")
		if _, err := kube.NoteWatchErrors(informer, "configmaps"); err == nil {
			t.Error("an informer that runs is taken")
		}
		w.refuse(true)
		for range 20 { // longer than any pause of the informer
			time.Sleep(time.Minute)
			wants("while it is refused", "watch of configmaps is out of date: failed to list *v1.ConfigMap: not for you")
		}
		w.refuse(false)
		time.Sleep(time.Minute)
		wants("when it has not heard anything yet", "is out of date")
		time.Sleep(3 * time.Minute)
		wants("when it was quiet", "")
		w.refuse(true)
		time.Sleep(time.Minute)
		wants("while it is refused again", "is out of date")
		w.version++
		w.refuse(false)
		time.Sleep(time.Minute)
		wants("when it has heard of something", "")
	})
}

// Who waits for an API server that does not answer, or not yet, is not refused.
func TestWatchThatWaitsForItsServer(t *testing.T) {
	for _, away := range []error{
		&url.Error{Op: "Get", URL: "https://api", Err: io.EOF}, context.DeadlineExceeded, apierrors.NewServiceUnavailable("no backend"),
		apierrors.NewTimeoutError("slow", 1), apierrors.NewServerTimeout(schema.GroupResource{}, "list", 1), apierrors.NewTooManyRequests("slow down", 1),
		apierrors.NewInternalError(errors.New("etcd is away")),
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &scripted{version: 1}
			informer := cache.NewSharedIndexInformer(w.listWatch(), &corev1.ConfigMap{}, 0, cache.Indexers{})
			check, err := kube.NoteWatchErrors(informer, "configmaps")
			if err != nil {
				t.Fatal(err)
			}
			go informer.RunWithContext(t.Context())
			synctest.Wait()
			w.fails(away)
			for range 20 {
				time.Sleep(10 * time.Second)
				if err := check(); err != nil {
					t.Errorf("while the API server answers %v: %v, want nothing", away, err)
				}
			}
			w.fails(nil)
			time.Sleep(3 * time.Minute) // an informer does not end while it waits for an answer
		})
	}
}

// scripted is a server of ConfigMaps of which there are none.
type scripted struct {
	mu      sync.Mutex
	refusal error
	version int
	end     *watch.FakeWatcher
}

func (s *scripted) refuse(refused bool) {
	if refused {
		s.fails(errors.New("not for you"))
	} else {
		s.fails(nil)
	}
}

func (s *scripted) fails(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = err
	if s.end != nil {
		s.end.Stop()
		s.end = nil
	}
}

func (s *scripted) listWatch() *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.refusal != nil {
				return nil, s.refusal
			}
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.refusal != nil {
				return nil, s.refusal
			}
			if o.SendInitialEvents != nil {
				return nil, errors.New("streamed lists are not served")
			}
			s.end = watch.NewFake()
			return s.end, nil
		},
	}
}

// wantLag looks at what each check says: its resource, and whether all was seen once.
func wantLag(t *testing.T, when string, checks map[string]func() error, synced bool) {
	t.Helper()
	for resource, check := range checks {
		err := check()
		var lag *kube.WatchError
		if !errors.As(err, &lag) || lag.Resource != resource || lag.Synced != synced {
			t.Errorf("%s: the check of %s says %v, want a WatchError about it with Synced %t", when, resource, err, synced)
		}
	}
}
