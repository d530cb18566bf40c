// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/lkg"
)

// worker is the config of the child: a word that it says when it runs.
type worker struct {
	Word string `json:"word"`
}

// crash is the word with which a child ends at once, badly.
const crash = "crash"

// child is the process that is configured: one that says its word, and stays.
func child(word string, heard *heard) *exec.Cmd {
	cmd := exec.Command("sh", "-c", `echo "$1"; [ "$1" != crash ] || exit 1; exec sleep 3600`, "worker", word)
	cmd.Stdout = heard
	return cmd
}

// heard is what children say, with the time at which it was heard.
type heard struct{ words chan said }

type said struct {
	word string
	at   time.Time
}

// Write takes a line.
func (h *heard) Write(p []byte) (int, error) {
	h.words <- said{strings.TrimSpace(string(p)), time.Now()}
	return len(p), nil
}

// next waits for a word.
func (h *heard) next(ctx context.Context, word string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		select {
		case s := <-h.words:
			if s.word == word {
				return s.at, nil
			}
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("waiting for a child to say %q: %w", word, ctx.Err())
		}
	}
}

// marks are the moments of one change, and how many records had been written by then.
type marks struct {
	puts atomic.Int64

	mu sync.Mutex
	at map[string]mark
}

type mark struct {
	at   time.Time
	puts int64
}

func (m *marks) set(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at[name] = mark{time.Now(), m.puts.Load()}
}

// first is set for a moment that may come again in the same change.
func (m *marks) first(name string) {
	if m.get(name).IsZero() {
		m.set(name)
	}
}

// begin forgets the moments of the change before.
func (m *marks) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.at)
}

func (m *marks) mark(name string) mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at[name]
}

func (m *marks) get(name string) time.Time { return m.mark(name).at }

func (m *marks) putsAt(name string) int64 { return m.mark(name).puts }

// An agent is ours: a Syncer over a real store, with a child process under a Supervisor.
type agent struct {
	*marks
	node       string
	heard      *heard
	requests   *atomic.Int64
	syncer     *configsync.Syncer[worker]
	supervisor *restart.Supervisor
	stop       func() error
}

// The parts of the agent that mark when they are called.
type (
	markedSource struct {
		configsync.Source
		a *agent
	}
	markedFetcher struct {
		configsync.Fetcher
		a *agent
	}
	markedStore struct {
		configsync.Store
		a *agent
	}
	markedRestarter struct {
		*restart.Supervisor
		a *agent
	}
)

// Desired implements configsync.Source.
func (s markedSource) Desired(ctx context.Context) (*configsync.Spec, error) {
	s.a.first("noticed")
	return s.Source.Desired(ctx)
}

// Fetch implements configsync.Fetcher.
func (f markedFetcher) Fetch(ctx context.Context, s configsync.Spec) (configsync.Object, error) {
	defer f.a.first("fetched")
	return f.Fetcher.Fetch(ctx, s)
}

// Put implements configsync.Store.
func (s markedStore) Put(ctx context.Context, stream string, payload []byte) error {
	s.a.puts.Add(1)
	return s.Store.Put(ctx, stream, payload)
}

// Restart implements configsync.Restarter.
func (r markedRestarter) Restart(ctx context.Context, c configsync.Change) error {
	r.a.set("recorded")
	return r.Supervisor.Restart(ctx, c)
}

// agent starts one on a node of its own.
func (w *world) agent(ctx context.Context, node string) (a *agent, err error) {
	a = &agent{marks: &marks{at: map[string]mark{}}, node: node, heard: &heard{make(chan said, 100)}}
	if err := w.node(ctx, node); err != nil {
		return nil, err
	}
	store, err := checkpoint.Open(filepath.Join(w.dir, node), checkpoint.Options{})
	if err != nil {
		return nil, err
	}
	o, err := a.options(w)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	a.supervisor, err = restart.NewSupervisor(restart.Options{
		Command: a.command, BackoffMin: time.Millisecond, OnExit: func(lkg.Exit, bool) { a.set("ended") },
	})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	o.Store, o.Restarter = markedStore{store, a}, markedRestarter{a.supervisor, a}
	if a.syncer, err = configsync.New(ctx, o); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return a, a.run(ctx, store)
}

func (a *agent) options(w *world) (o configsync.Options[worker], err error) {
	config, requests := w.counted()
	a.requests = requests
	client, err := kube.NewClient(config, nil)
	if err != nil {
		return o, err
	}
	source, err := kube.NewNodeConfigSource(client, a.node, kube.Options{})
	if err != nil {
		return o, err
	}
	fetcher, err := kube.NewConfigMapFetcher(client, kube.Options{})
	if err != nil {
		return o, err
	}
	return configsync.Options[worker]{
		Version: "v1.0.0", Key: key, Codec: configsync.YAML[worker](configsync.YAMLOptions{}), Default: func() worker { return worker{"local"} },
		Source: markedSource{source, a}, Fetcher: markedFetcher{fetcher, a}, Reporter: source.StatusReporter(),
		ProbeInterval: 50 * time.Millisecond, Bounds: lkg.Bounds{MinTrial: time.Millisecond},
	}, nil
}

// command is what an agent does for each start of its child: it decides, reports, and then starts.
func (a *agent) command(ctx context.Context, last lkg.Exit) (*exec.Cmd, error) {
	a.set("gone")
	active, err := a.syncer.Bootstrap(ctx, last)
	if err != nil {
		return nil, err
	}
	a.set("decided")
	if err := a.syncer.Announce(ctx); err != nil {
		return nil, err
	}
	a.set("reported")
	return child(active.Config.Word, a.heard), nil
}

// run starts everything, and waits for the first child.
func (a *agent) run(ctx context.Context, store *checkpoint.Store) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 2)
	go func() { ended <- a.supervisor.Run(ctx) }()
	a.stop = func() error {
		cancel()
		return errors.Join(<-ended, <-ended, store.Close())
	}
	_, err := a.heard.next(ctx, "local")
	go func() { ended <- a.syncer.Run(ctx) }()
	return err
}

// good waits until a config is the last known good one.
func (a *agent) good(ctx context.Context, uid string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		if s := a.syncer.Status(); s.LastKnownGood.UID == uid {
			tick.Stop()
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return fmt.Errorf("waiting for the promotion of %q: %w", uid, ctx.Err())
		}
	}
}
