// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// startCache returns a cache that runs until the test ends.
func startCache(t *testing.T, config *rest.Config, o kube.CacheOptions) *kube.Cache {
	t.Helper()
	factory := kube.NewFactory(clientset(t, config), o)
	cache, err := kube.NewCache(factory, o)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	factory.Start(ctx.Done())
	return cache
}

func syncedCache(t *testing.T, config *rest.Config, o kube.CacheOptions) *kube.Cache {
	t.Helper()
	cache := startCache(t, config, o)
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	must(t, cache.WaitForSync(ctx))
	return cache
}

func podNames(pods []*corev1.Pod) string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}

// seen collects changes.
type seen struct {
	mu      sync.Mutex
	changes map[drain.Change]int
}

func (s *seen) add(c drain.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == nil {
		s.changes = map[drain.Change]int{}
	}
	s.changes[c]++
}

func (s *seen) count(c drain.Change) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes[c]
}

func (s *seen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.changes)
}

func (s *seen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.changes)
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// aNetwork is a network whose watches can be cut.
type aNetwork struct {
	mu      sync.Mutex
	cut     bool
	expired int // how many watches are answered that they are too old
	watches []io.Closer
}

func (n *aNetwork) through(config *rest.Config) *rest.Config { return through(config, n.roundTrip) }

func (n *aNetwork) roundTrip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if answer, err := n.interfered(r); answer != nil || err != nil {
		return answer, err
	}
	response, err := next.RoundTrip(r)
	if err == nil && isWatch(r) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.watches = append(n.watches, response.Body)
	}
	return response, err
}

func (n *aNetwork) interfered(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut {
		return nil, io.ErrUnexpectedEOF
	}
	if !isWatch(r) || n.expired == 0 {
		return nil, nil
	}
	n.expired--
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
	return &http.Response{
		StatusCode: http.StatusGone, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader([]byte(body))),
	}, nil
}

// fall cuts the watches and lets nothing through.
func (n *aNetwork) fall() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = true
	for _, w := range n.watches {
		w.Close()
	}
	n.watches = nil
}

// rise lets everything through, but for so many watches that have to start anew.
func (n *aNetwork) rise(expired int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut, n.expired = false, expired
}
