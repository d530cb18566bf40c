// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine/provider"
)

// ServerOptions are what a [Server] needs.
type ServerOptions struct {
	// Dir holds the state. It is made if need be. One server at a time may use it.
	Dir string
	// NoSync leaves out the syncs: the state survives SIGKILL then, and not the end of the machine. It is for tests with many instances.
	NoSync bool
	// Now is the clock by which instances start and stop; nil is time.Now.
	Now func() time.Time
	// Kill ends the process at once, for the faults that do so. Where it returns, the server answers nothing from then on, and touches no file.
	// Nil refuses those faults.
	Kill func()
}

// A Server is a cloud. It is an http.Handler; make it with [NewServer].
type Server struct {
	store  *store
	faults faults
	now    func() time.Time
	kill   func()
	mux    http.ServeMux

	dead    atomic.Bool
	end     chan struct{} // closed with it
	endOnce sync.Once

	mu      sync.Mutex // guards calls, and that none begins when the server is dead
	running sync.WaitGroup
	calls   map[string]int64
}

// errDead ends what a server does that was killed.
var errDead = errors.New("the server was killed")

// NewServer reads the state in the directory and finishes what a crash has cut off there.
func NewServer(o ServerOptions) (*Server, error) {
	if err := option.CheckRequired(
		"machine/provider/providertest.NewServer", "ServerOptions.Dir", o.Dir, "the directory of the state",
	); err != nil {
		return nil, err
	}
	s := &Server{now: o.Now, kill: o.Kill, calls: map[string]int64{}, end: make(chan struct{})}
	if s.now == nil {
		s.now = time.Now
	}
	var err error
	if s.store, err = openStore(files{dir: o.Dir, noSync: o.NoSync, step: s.step}); err != nil {
		return nil, errors.Join(errors.New("opening the fake cloud"), err)
	}
	s.routes()
	return s, nil
}

// Close ends the calls that run, without a reply to those that wait, and lets another server use the directory.
func (s *Server) Close() error {
	if s.store == nil {
		return option.NotMade("machine/provider/providertest.Server.Close", "machine/provider/providertest.NewServer")
	}
	s.halt()
	s.running.Wait()
	return s.store.close()
}

// halt has no further call begin, and no operation on a file.
func (s *Server) halt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead.Store(true)
	s.endOnce.Do(func() { close(s.end) })
}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if w == nil || r == nil {
		return // there is no request to answer
	}
	if !s.begin() {
		cut(w)
		return
	}
	defer s.running.Done()
	s.mux.ServeHTTP(w, r)
}

func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead.Load() {
		return false
	}
	s.running.Add(1)
	return true
}

func (s *Server) routes() {
	handle(s, "Create", s.create)
	handle(s, "Get", s.get)
	handle(s, "List", s.list)
	handle(s, "Delete", s.delete)
	handle(s, "Plan", s.plan)
	handle(s, "Update", s.update)
	handle(s, "Validate", s.validate)
	handle(s, "Stop", s.stop)
	handle(s, "Reboot", s.reboot)
	handle(s, "Adopt", s.adopt)
	handle(s, "Capacity", s.capacity)
	handle(s, "Console", s.console)
	handle(s, "Resize", s.resize)
	s.adminRoutes()
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		replyError(w, provider.Errorf(provider.InvalidConfig, "%s %.200q is no call of a fake cloud", r.Method, r.URL.Path))
	})
}

// handle serves a method of the provider, with what is to go wrong with it.
func handle[Q, A any](s *Server, method string, do func(context.Context, Q) (A, error)) {
	s.mux.HandleFunc("POST "+callPath+method, func(w http.ResponseWriter, r *http.Request) {
		s.count(method)
		var q Q
		err := readBody(w, r, &q)
		if err == nil {
			err = s.before(r.Context(), method)
		}
		var a A
		if err == nil {
			a, err = do(r.Context(), q)
		}
		switch {
		case s.after(method):
			cut(w)
		case err != nil:
			replyError(w, err)
		default:
			reply(w, http.StatusOK, a)
		}
	})
}

func (s *Server) count(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[method]++
}

// before lets go wrong what happens before an effect.
func (s *Server) before(ctx context.Context, method string) error {
	if f, ok := s.faults.take(s.now(), method, "", Latency); ok {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		case <-s.end:
		}
	}
	if _, ok := s.faults.take(s.now(), method, "", KillBefore); ok {
		s.die()
	}
	f, ok := s.faults.take(s.now(), method, "", RateLimited, Unavailable, Unauthorized)
	switch {
	case s.dead.Load():
		return errDead
	case ctx.Err() != nil:
		return ctx.Err()
	case s.store.broken() != nil:
		return provider.Errorf(provider.Unavailable, "the state could not be written, the server has to be started again: %w", s.store.broken())
	case ok:
		err := provider.Errorf(provider.Class(f.Kind), "%s: as was asked for by a fault", method)
		if f.Kind == RateLimited {
			err.After = f.Delay
		}
		return err
	}
	return nil
}

// after lets go wrong what happens after an effect. It reports whether there is no reply.
func (s *Server) after(method string) (noReply bool) {
	if _, ok := s.faults.take(s.now(), method, "", KillAfter); ok {
		s.die()
	}
	_, lost := s.faults.take(s.now(), method, "", LostReply)
	return lost || s.dead.Load()
}

// step comes before each operation on the files.
func (s *Server) step() error {
	if s.dead.Load() {
		return errDead
	}
	if _, ok := s.faults.take(s.now(), "", "", KillWrite); ok {
		s.die()
		return errDead
	}
	return nil
}

func (s *Server) die() {
	s.kill()
	s.halt()
}

// cut ends the connection without a reply. One that can't be cut gets a reply that nobody understands.
func cut(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close() // that is what is wanted of it
		return
	}
	w.WriteHeader(http.StatusBadGateway)
}
