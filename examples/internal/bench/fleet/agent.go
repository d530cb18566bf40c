// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/lkg"
)

// payload is the config of what agents configure.
type payload struct {
	Word string `json:"word"`
}

// An agent is the parts of examples/agent that an adoption goes through, with a restart that costs nothing.
type agent struct {
	syncer *configsync.Syncer[payload]
	store  *checkpoint.Store
	asked  chan struct{}
	wg     sync.WaitGroup
	err    error // of the loop, once it has ended
}

// Restart implements configsync.Restarter.
func (a *agent) Restart(ctx context.Context, _ configsync.Change) error {
	select {
	case a.asked <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// agent starts one on a node that is there.
func (w *world) agent(ctx context.Context, node string, asks *asks) (*agent, error) {
	config := w.connection()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, asks} })
	client, err := kube.NewClient(config, nil)
	if err != nil {
		return nil, err
	}
	o, err := parts(client, node)
	if err != nil {
		return nil, err
	}
	a := &agent{asked: make(chan struct{}, 1)}
	if a.store, err = checkpoint.Open(filepath.Join(w.dir, node), checkpoint.Options{}); err != nil {
		return nil, err
	}
	o.Store, o.Restarter = a.store, a
	if a.syncer, err = configsync.New(ctx, o); err != nil {
		return nil, errors.Join(err, a.store.Close())
	}
	if err := a.begin(ctx, lkg.Exit{}); err != nil {
		return nil, errors.Join(err, a.store.Close())
	}
	a.wg.Go(func() { a.err = a.syncer.Run(ctx) })
	a.wg.Go(func() { a.restarts(ctx) })
	return a, nil
}

// parts are those that examples/agent takes for --source=nodeconfig.
func parts(client dynamic.Interface, node string) (o configsync.Options[payload], err error) {
	source, err := kube.NewNodeConfigSource(client, node, kube.Options{})
	if err != nil {
		return o, err
	}
	fetcher, err := kube.NewConfigMapFetcher(client, kube.Options{})
	if err != nil {
		return o, err
	}
	condition, err := kube.NewNodeConditionReporter(client, node, kube.Options{})
	return configsync.Options[payload]{
		Version: "v1.0.0", Key: key, Codec: configsync.YAML[payload](configsync.YAMLOptions{}), Default: func() payload { return payload{"local"} },
		Source: source, Fetcher: fetcher, Reporter: configsync.First(source.StatusReporter(), condition),
		ProbeInterval: time.Hour, // trials last longer than what is measured
	}, err
}

// begin is one start: a config is chosen from disk, and the API server is told before it is used.
func (a *agent) begin(ctx context.Context, last lkg.Exit) error {
	if _, err := a.syncer.Bootstrap(ctx, last); err != nil {
		return err
	}
	_ = a.syncer.Announce(ctx) // what has not landed is sent again
	return nil
}

func (a *agent) restarts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.asked:
			if err := a.begin(ctx, lkg.Exit{Kind: lkg.ExitPlanned}); err != nil && ctx.Err() == nil {
				fmt.Println("an agent can't start what it configures:", err)
			}
		}
	}
}

// end waits until the agent is gone, after the end of its context.
func (a *agent) end() error {
	a.wg.Wait()
	return errors.Join(a.err, a.store.Close())
}

// asks counts requests by verb and resource.
type asks struct {
	mu sync.Mutex
	n  map[string]int
}

// take returns what was counted since the last time.
func (a *asks) take() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.n
	a.n = map[string]int{}
	return n
}

type counting struct {
	next http.RoundTripper
	asks *asks
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	what := verb(req) + " " + resource(req.URL.Path)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		what += fmt.Sprint(" in vain, ", resp.StatusCode)
	}
	c.asks.mu.Lock()
	defer c.asks.mu.Unlock()
	c.asks.n[what]++
	return resp, err
}

func verb(req *http.Request) string {
	if req.Method == http.MethodGet && strings.Contains(req.URL.RawQuery, "watch=") {
		return "watch"
	}
	return strings.ToLower(req.Method)
}

// resource is the one that a path is of, with its subresource.
func resource(path string) string {
	words := strings.Split(strings.Trim(path, "/"), "/")
	for i, w := range words {
		switch w {
		case "nodes", "nodeconfigs", "configmaps":
			if len(words) > i+2 {
				return w + "/" + words[i+2]
			}
			return w
		}
	}
	return path
}
