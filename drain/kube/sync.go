// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belayproject/belay/internal/option"
)

const (
	// syncEvery is the pause between two looks whether the informers have synced.
	syncEvery = 50 * time.Millisecond
	// startTime is how long an informer may take to be started: a factory starts its informers a moment after its Start
	// has returned.
	startTime = 500 * time.Millisecond
)

// cacheState is how far a Cache has come.
type cacheState struct {
	mu       sync.Mutex
	compared bool
	closed   bool
}

func (s *cacheState) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

func (s *cacheState) setCompared() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compared = true
}

func (s *cacheState) get() (compared, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compared, s.closed
}

// Synced says whether every informer has seen all objects once.
func (c *Cache) Synced() bool {
	for _, i := range c.informers {
		if !i.HasSynced() {
			return false
		}
	}
	return true
}

// Check returns nil if the Cache has synced, its informers run and no watch is refused, or else an [InformerError] for
// each informer. A watch that came back still counts as failing until it hears something, or has not failed again for
// two minutes. Watches wait for an API server that can't be reached or is overloaded: that is no answer yet for a Cache
// that has not synced, and not noticed here by one that has. Watch errors are not known of informers that ran before
// the Cache was made, or that belong to an embedder.
func (c *Cache) Check() error {
	if c.nodes == nil {
		return option.NotMade("drain/kube.Cache.Check", "drain/kube.NewCache")
	}
	compared, closed := c.state.get()
	if closed {
		return errClosed
	}
	if err := c.checkInformers(); err != nil {
		return err
	}
	if c.client != nil && !compared {
		return errNotCompared
	}
	return nil
}

func (c *Cache) checkInformers() error {
	var errs []error
	for _, i := range c.informers {
		errs = append(errs, i.check())
	}
	return errors.Join(errs...)
}

// WaitForSync waits until every informer has synced. Over the informers of an embedder it then compares what they show
// with a short list from the server, and returns an [InformerError] for one that drops a field or selects too little.
// It does not wait for an informer that has not been started or has stopped. If ctx ends first, the error holds what
// [Cache.Check] found.
//
// The Cache then shows what the API server had when its informers were started, where server and client stream lists
// (WatchList, the default from Kubernetes 1.34 and client-go 0.35 on); elsewhere what the API server's own cache had,
// which is behind by less than a second in health.
func (c *Cache) WaitForSync(ctx context.Context) error {
	if c.nodes == nil {
		return option.NotMade("drain/kube.Cache.WaitForSync", "drain/kube.NewCache")
	}
	if err := c.waitForInformers(ctx); err != nil {
		return fmt.Errorf("waiting for the cache: %w", err)
	}
	if c.client == nil {
		return nil
	}
	if err := c.compare(ctx); err != nil {
		return fmt.Errorf("comparing the cache with the API server: %w", err)
	}
	c.state.setCompared()
	return nil
}

func (c *Cache) waitForInformers(ctx context.Context) error {
	ticker := time.NewTicker(syncEvery)
	defer ticker.Stop()
	begun := time.Now()
	for {
		if _, closed := c.state.get(); closed {
			return errClosed
		}
		err := c.checkInformers()
		if err == nil || isFinal(err, time.Since(begun)) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// isFinal reports whether waiting longer cannot mend what is wrong with an informer.
func isFinal(err error, waited time.Duration) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	for _, e := range joined.Unwrap() {
		if errors.Is(e, ErrInformerStopped) || errors.Is(e, ErrInformerNotStarted) && waited >= startTime {
			return true
		}
	}
	return false
}
