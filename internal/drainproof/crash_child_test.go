// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/testenv/kubeconfig"
)

// childEnv names the file that makes this test binary a process that drains, and nothing else.
const childEnv = "BELAY_DRAIN_CHILD"

// childTime ends a child that its parent has lost.
const childTime = 2 * time.Minute

// A childTask says what a child does: the maintenance of a set of nodes from the drain to the release.
type childTask struct {
	Kubeconfig string
	Holder     string
	Nodes      []string
	// State is the file in which the child keeps its own, as a controller would in a resource: how far it is, and, if Keep, also the status
	// that Run reports.
	State string
	Keep  bool
	// Stop is the write, counted from 1, at which the child stops for ever; 0 for never. It has been carried out by the server if Sent.
	Stop int
	Sent bool
}

// A childEvent is a line that a child tells its parent.
type childEvent struct {
	Kind      string           // one of the constants below
	Remaining int              // pods that have to leave, with childReport
	Status    *drain.SetStatus `json:",omitempty"` // the report
	Writes    int              // made so far
	Error     string           `json:",omitempty"`
}

// The kinds of events.
const (
	childReady    = "ready"    // its cache has synced
	childReport   = "report"   // Run has reported
	childStopped  = "stopped"  // at the write where it had to
	childDrained  = "drained"  // every node is drained
	childReleased = "released" // everything is done
	childFailed   = "failed"
)

// childMain is the child's main function. It talks through file descriptor 3.
func childMain(file string) int {
	c := &child{out: json.NewEncoder(os.NewFile(3, "events"))}
	ctx, cancel := context.WithTimeout(context.Background(), childTime)
	defer cancel()
	if err := c.run(ctx, file); err != nil {
		c.tell(childEvent{Kind: childFailed, Error: err.Error()})
		return 1
	}
	return 0
}

type child struct {
	childTask
	writes atomic.Int64
	mu     sync.Mutex
	out    *json.Encoder
}

func (c *child) tell(e childEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.Writes = int(c.writes.Load())
	_ = c.out.Encode(e)
}

func (c *child) run(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &c.childTask); err != nil {
		return err
	}
	config, err := kubeconfig.Read(c.Kubeconfig)
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return stopper{c, next} })
	d, err := connect(ctx, config, nil)
	if err != nil {
		return err
	}
	c.tell(childEvent{Kind: childReady})
	if err := c.phase(ctx, d, drain.Drain, drain.Drained); err != nil {
		return err
	}
	c.tell(childEvent{Kind: childDrained})
	if err := c.phase(ctx, d, drain.Release, drain.Released); err != nil {
		return err
	}
	c.tell(childEvent{Kind: childReleased})
	return nil
}

// phase runs one mode to its end. A child that finds that its predecessor came as far as the release goes on there.
func (c *child) phase(ctx context.Context, d *drain.Drainer, mode drain.Mode, want drain.Phase) error {
	s := setOf(c.Holder, mode, c.Nodes...)
	kept, err := c.load()
	if err != nil {
		return err
	}
	if mode == drain.Drain && kept.Released {
		return nil
	}
	if mode == drain.Release && !kept.Released {
		kept = childState{Released: true}
		if err := c.save(kept); err != nil {
			return err
		}
	}
	s.Last = kept.Last
	st, err := d.Run(ctx, s, func(st drain.SetStatus) {
		remaining := 0
		for _, n := range st.Nodes {
			remaining += n.Counts.Remaining
		}
		if kept.Last = &st; c.Keep {
			if err := c.save(kept); err != nil {
				c.tell(childEvent{Kind: childFailed, Error: err.Error()})
			}
		}
		c.tell(childEvent{Kind: childReport, Remaining: remaining, Status: &st})
	})
	if err != nil {
		return err
	}
	for _, n := range st.Nodes {
		if n.Phase != want {
			return fmt.Errorf("node %q ended in phase %q (%s %q), want %q", n.Node, n.Phase, n.Reason, n.Message, want)
		}
	}
	return nil
}

// A childState is what a caller of the Drainer has to keep itself: what it wants, and, if it likes, the last status.
type childState struct {
	Released bool // the maintenance is over, and the nodes are being released
	Last     *drain.SetStatus
}

func (c *child) save(s childState) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.State+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(c.State+".new", c.State)
}

func (c *child) load() (childState, error) {
	var s childState
	text, err := os.ReadFile(c.State)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

// A stopper counts writes, and stops the child at one of them.
type stopper struct {
	c    *child
	next http.RoundTripper
}

// RoundTrip never returns from the write at which the child stops.
func (s stopper) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return s.next.RoundTrip(r)
	}
	n := int(s.c.writes.Add(1))
	if n != s.c.Stop {
		return s.next.RoundTrip(r)
	}
	if s.c.Sent {
		response, err := s.next.RoundTrip(r)
		if err == nil {
			defer response.Body.Close()
		}
	}
	s.c.tell(childEvent{Kind: childStopped})
	select {}
}
