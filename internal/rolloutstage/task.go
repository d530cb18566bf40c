// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/belayproject/belay/internal/testenv/kubeconfig"
)

// childEnv names the file that makes an executable a controller, and nothing else.
const childEnv = "BELAY_ROLLOUT_CHILD"

// childTime ends a controller that its parent has lost, unless its task says otherwise.
const childTime = 30 * time.Minute

// A Task says what a controller's process does.
type Task struct {
	// Lease makes it a controller only as long as it leads by that Lease, which lasts LeaseFor. Holder tells it from the others. It leads by the
	// elector of client-go, which renews and asks at eighths of that; with Member as the reference controller does, by package identity.
	Lease, Holder string
	LeaseFor      time.Duration
	Member        bool
	// Delay, if not 0, is how late each request is sent, and each answer and each piece of a watch arrives, at most. It is drawn for each, by Seed.
	Delay time.Duration
	Seed  uint64
	// At is a part of the path of the writes that count for Stop and Freeze; empty counts all but those of the Lease and of events.
	At string
	// Stop is the write, counted from 1, at which it stops for ever; 0 for never. The write has been carried out by the server if Sent.
	Stop int
	Sent bool
	// Health has nodes and the work on them judged before and after, as in production: as package rollout/kube does it.
	Health bool
	// Freeze is the write before which it freezes itself. When it is thawed, the write goes out.
	Freeze int
	// Life is how long the process lives at most, should its parent be lost. Zero means 30 minutes. To outlive it is a failure.
	Life time.Duration

	Kubeconfig, Domain string // by Spawn, the first unless it is set
}

// An Event is what a controller's process tells its parent.
type Event struct {
	Kind Kind
	What string
}

// A Kind of an [Event].
type Kind string

// Kinds of events.
const (
	Ready   Kind = "ready"   // its caches have synced
	Leads   Kind = "leads"   // it has the Lease
	Stopped Kind = "stopped" // at the write What
	Freezes Kind = "freezes" // before the write What
	Retired Kind = "retired" // it has lost the Lease, and ends
	Failed  Kind = "failed"  // because of What
)

// Main is a controller if this process was started to be one, and returns its exit code then.
func Main() (code int, is bool) {
	file := os.Getenv(childEnv)
	if file == "" {
		return 0, false
	}
	c := &child{out: json.NewEncoder(os.NewFile(3, "events")), wake: make(chan struct{}, 1)}
	if err := c.live(file); err != nil {
		c.tell(Failed, err.Error())
		return 1, true
	}
	return 0, true
}

// A child is a controller in its process.
type child struct {
	Task
	mu     sync.Mutex
	writes int
	out    *json.Encoder
	wake   chan struct{}
}

func (c *child) tell(kind Kind, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.out.Encode(Event{kind, what})
}

// poke wakes the controller up.
func (c *child) poke() { poke(c.wake) }

// live does the task of a file for as long as it may.
func (c *child) live(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &c.Task); err != nil {
		return err
	}
	life := cmp.Or(c.Life, childTime)
	ctx, cancel := context.WithTimeout(context.Background(), life)
	defer cancel()
	if err := c.run(ctx); ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("its parent is lost: it has lived for %s", life)
}

func (c *child) run(ctx context.Context) error {
	config, err := kubeconfig.Read(c.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.UserAgent = -1, strings.TrimSuffix(ControllerAgent+"/"+c.Holder, "/")
	p, err := c.plant(ctx, config)
	if err != nil {
		return err
	}
	c.tell(Ready, "")
	if c.Lease == "" {
		return p.run(ctx, c)
	}
	return c.lead(ctx, config, p)
}
