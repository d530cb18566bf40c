// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsynctest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/belayproject/belay/configsync"
)

// A Server is a configsync.Source and a configsync.FollowFetcher over memory. The zero value is up, names no config and
// holds no object. It may be used by several goroutines.
type Server struct {
	mu       sync.Mutex
	spec     *configsync.Spec
	err      error
	down     bool
	objects  map[string]configsync.Object
	denied   map[string]bool
	version  int
	uids     int
	fetches  int
	watchers map[chan struct{}]bool
}

// Name makes the server name spec. Nil names the local config.
func (s *Server) Name(spec *configsync.Spec) {
	s.change(func() { s.spec, s.err = spec, nil })
}

// Spoil makes the server answer err instead of a Spec.
func (s *Server) Spoil(err error) {
	s.change(func() { s.err = err })
}

// Down makes every call fail with configsync.ErrUnreachable, or brings the server back.
func (s *Server) Down(down bool) {
	s.change(func() { s.down = down })
}

// Deny makes reads of an object forbidden, or allows them again.
func (s *Server) Deny(namespace, name string, denied bool) {
	s.change(func() {
		if s.denied == nil {
			s.denied = map[string]bool{}
		}
		s.denied[namespace+"/"+name] = denied
	})
}

// Put creates an object, or edits the one of that name in place, and returns it. A new object gets a new UID.
func (s *Server) Put(namespace, name string, data map[string]string, immutable bool) configsync.Object {
	var o configsync.Object
	s.change(func() {
		s.version++
		o = configsync.Object{Namespace: namespace, Name: name, Data: maps.Clone(data), Immutable: immutable,
			UID: s.objects[namespace+"/"+name].UID, ResourceVersion: fmt.Sprint(s.version)}
		if o.UID == "" {
			s.uids++
			o.UID = fmt.Sprintf("00000000-0000-4000-8000-%012d", s.uids)
		}
		o.Raw = rawOf(o)
		if s.objects == nil {
			s.objects = map[string]configsync.Object{}
		}
		s.objects[namespace+"/"+name] = o
	})
	return o
}

// Delete removes an object.
func (s *Server) Delete(namespace, name string) {
	s.change(func() { delete(s.objects, namespace+"/"+name) })
}

// Object returns an object as it is now, whether the server is up or not; the zero Object if there is none.
func (s *Server) Object(namespace, name string) configsync.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[namespace+"/"+name]
}

// Fetches returns how many objects were asked for.
func (s *Server) Fetches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches
}

// Desired implements configsync.Source.
func (s *Server) Desired(context.Context) (*configsync.Spec, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.down:
		return nil, configsync.ErrUnreachable
	case s.err != nil || s.spec == nil:
		return nil, s.err
	}
	spec := *s.spec
	return &spec, nil
}

// Fetch implements configsync.Fetcher.
func (s *Server) Fetch(_ context.Context, spec configsync.Spec) (configsync.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetches++
	name := spec.Namespace + "/" + spec.Name
	o, ok := s.objects[name]
	switch {
	case s.down:
		return configsync.Object{}, configsync.ErrUnreachable
	case s.denied[name]:
		return configsync.Object{}, fmt.Errorf("%q: %w", name, configsync.ErrForbidden)
	case !ok:
		return configsync.Object{}, fmt.Errorf("%q: %w", name, configsync.ErrMissing)
	}
	o.Data = maps.Clone(o.Data)
	return o, nil
}

// Watch implements configsync.Source. It ends when the server goes down.
func (s *Server) Watch(ctx context.Context, changed func()) error {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	if s.watchers == nil {
		s.watchers = map[chan struct{}]bool{}
	}
	s.watchers[c] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, c)
		s.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c:
		}
		if s.isDown() {
			return configsync.ErrUnreachable
		}
		changed()
	}
}

// WatchObject implements configsync.FollowFetcher.
func (s *Server) WatchObject(ctx context.Context, _ configsync.Spec, changed func()) error {
	return s.Watch(ctx, changed)
}

func (s *Server) isDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

// change alters the server and tells the watchers.
func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	for c := range s.watchers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// rawOf serialises an object as the API server would.
func rawOf(o configsync.Object) []byte {
	type meta struct {
		Namespace       string `json:"namespace"`
		Name            string `json:"name"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	}
	b, err := json.Marshal(struct {
		Kind       string            `json:"kind"`
		APIVersion string            `json:"apiVersion"`
		Metadata   meta              `json:"metadata"`
		Immutable  bool              `json:"immutable,omitempty"`
		Data       map[string]string `json:"data"`
	}{"ConfigMap", "v1", meta{o.Namespace, o.Name, o.UID, o.ResourceVersion}, o.Immutable, o.Data})
	if err != nil {
		return nil // strings always marshal
	}
	return b
}
