// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// recent is how long what the API server said last of an object stands for reading it again.
const recent = time.Minute

// seen is the newest version of an object that this process knows, so that what a watch has just brought is not read again. It never goes back:
// a watch adds to what was read before, and what is older, or of another object, is not taken. Without a watch, nothing is known: nobody would say
// that it has changed. A nil seen knows nothing.
type seen struct {
	mu      sync.Mutex
	watches int                        // how many have listed and go on
	object  *unstructured.Unstructured // not changed by anybody; nil means that it has to be read
	at      time.Time                  // monotonic: when the API server said so
}

// fresh returns the object, or nil if it has to be read.
func (s *seen) fresh() *unstructured.Unstructured {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches == 0 || time.Since(s.at) > recent {
		return nil
	}
	return s.object
}

// read takes the answer to a read of etcd, or to a write.
func (s *seen) read(u *unstructured.Unstructured) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object == nil || s.object.GetUID() != u.GetUID() || !older(u, s.object) {
		s.object, s.at = u, time.Now()
	}
}

// watched takes what a watch has brought. Its server may be behind: what was not read before may be older than what the node knew once.
func (s *seen) watched(u *unstructured.Unstructured) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.object == nil:
	case s.object.GetUID() != u.GetUID():
		s.object = nil
	case !older(u, s.object):
		s.object, s.at = u, time.Now()
	}
}

// follow adds n watches.
func (s *seen) follow(n int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches += n
}

// forget has the object read the next time.
func (s *seen) forget() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.object = nil
}

// older reports whether a is an older version than b of the same object, or can't be told from one.
func older(a, b *unstructured.Unstructured) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err != nil || order < 0
}
