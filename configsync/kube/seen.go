// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/belayproject/belay/internal/resourceversion"
)

// recent is how long what the API server said last of an object stands for reading it again. A watch on which nothing happens is told once a minute how far
// it has come (bookmarkFrequency of k8s.io/apiserver/pkg/storage/cacher): while it lives, the object is not read; a dead one is believed for this long.
const recent = 2 * time.Minute

// seen is the newest version of an object that this process knows, so that what a watch has just brought is not read again. It never goes back:
// a watch adds to what was read before, and what is older, or of another object, is not taken. Without a watch, nothing is known: nobody would say
// that it has changed. A nil seen knows nothing.
type seen struct {
	mu      sync.Mutex
	watches int                        // how many have listed and go on
	object  *unstructured.Unstructured // not changed by anybody; nil means that it has to be read
	at      time.Time                  // monotonic: when the API server said so
	told    *unstructured.Unstructured // what a watch brought last, taken or not
	news    int                        // how often a watch has brought something, or the object was forgotten
	lost    int                        // what news was when the object was forgotten last
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

// asking is called before a read of etcd or a write; what it returns goes to read with the answer.
func (s *seen) asking() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

// read takes the answer to what was asked then. What a watch brought since may be newer than the answer, and is not brought twice: of the two, the
// newer is kept, and neither where that can't be told, or where the object was forgotten since.
func (s *seen) read(u *unstructured.Unstructured, asked int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case asked < s.lost:
	case asked == s.news, follows(u, s.told):
		s.keep(u)
	case follows(s.told, u):
		s.keep(s.told)
	}
}

// watched takes what a watch has brought. Its server may be behind: what was not read before may be older than what the node knew once.
func (s *seen) watched(u *unstructured.Unstructured) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news++
	s.told = u
	if follows(u, s.object) || follows(s.object, u) {
		s.keep(u)
	} else {
		s.object = nil
	}
}

// word takes note that a watch has come as far as a version: what is known of an object, and is no newer than that, stands from now.
func (s *seen) word(version string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object == nil {
		return
	}
	if order, err := resourceversion.Compare(version, s.object.GetResourceVersion()); err == nil && order >= 0 {
		s.at = time.Now()
	}
}

// keep takes u, unless a newer version of it is known.
func (s *seen) keep(u *unstructured.Unstructured) {
	if !follows(s.object, u) || follows(u, s.object) {
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
	s.news++
	s.lost = s.news
	s.object = nil
}

// follows reports whether a is b, or a later version of the same object. Without either, it does not.
func follows(a, b *unstructured.Unstructured) bool {
	if a == nil || b == nil || a.GetUID() != b.GetUID() {
		return false
	}
	order, err := resourceversion.Compare(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order >= 0
}
