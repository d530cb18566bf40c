// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/protocol"
)

// A Client is the access of one controller.
type Client struct {
	c *Cluster
	// OnWrite, if set, is called before each write and after it; op names what is written, and of what.
	OnWrite func(op string, done bool)
	// Lag, if set, says by how many versions a list is behind, and the ledger that was seen.
	Lag func() int
	// ShadowLag, if set, is that of the list of shadows.
	ShadowLag func() int

	known int // the version of the last answer about the ledger
}

// Connect gives a controller its access.
func (c *Cluster) Connect() *Client { return &Client{c: c} }

// Options are those of a controller that has this access.
func (k *Client) Options() controller.Options {
	return controller.Options{
		Ledger: ledgers{k}, Rollouts: rollouts{k}, Fleet: fleet{k}, Shadows: shadows{k}, Drainer: drainer{k}, Health: health{k},
	}
}

// write makes one write, under the lock.
func (k *Client) write(ctx context.Context, kind, name string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if k.OnWrite != nil {
		k.OnWrite(kind+" "+name, false)
	}
	k.c.mu.Lock()
	err := do()
	if err == nil {
		k.c.writes[kind]++
		k.c.keep()
		k.c.check(kind + " " + name)
	}
	k.c.mu.Unlock()
	if err == nil && k.OnWrite != nil {
		k.OnWrite(kind+" "+name, true)
	}
	return err
}

func conflict(what, name string) error {
	return fmt.Errorf("writing %s %q: %w", what, name, rollout.ErrConflict)
}

// lagging is a list as this client sees it.
func lagging[T any](k *Client, past [][]T) []T {
	if len(past) == 0 {
		return nil
	}
	behind := 0
	if k.Lag != nil {
		behind = min(k.Lag(), len(past)-1)
	}
	return past[len(past)-1-behind]
}

type ledgers struct{ *Client }

var _ rollout.SeenLedger = ledgers{}

// A ledgerVersion is the ledger at one time; at zero there was none.
type ledgerVersion struct {
	ledger protocol.Ledger
	at     int
}

func (k ledgers) Seen() (protocol.Ledger, string, bool) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	past := k.c.pastLedgers
	if len(past) == 0 {
		return protocol.Ledger{}, "", false
	}
	behind := 0
	if k.Lag != nil {
		behind = min(k.Lag(), len(past)-1)
	}
	for behind > 0 && past[len(past)-1-behind].at < k.known {
		behind--
	}
	v := past[len(past)-1-behind]
	return v.ledger, strconv.Itoa(v.at), v.at > 0 && v.at >= k.known
}

func (k ledgers) Load(ctx context.Context) (protocol.Ledger, string, error) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	k.known = k.c.ledgerAt
	if k.c.ledgerAt == 0 {
		return protocol.Ledger{}, "", fmt.Errorf("the ledger: %w", fs.ErrNotExist)
	}
	return k.c.ledger, strconv.Itoa(k.c.ledgerAt), ctx.Err()
}

func (k ledgers) Store(ctx context.Context, l protocol.Ledger, version string) (string, error) {
	err := k.write(ctx, "ledger", "", func() error {
		if is := strconv.Itoa(k.c.ledgerAt); version != is && (version != "" || k.c.ledgerAt != 0) {
			return conflict("ledger", version)
		}
		k.c.freed(l)
		k.c.ledger, k.c.ledgerAt = l, k.c.next()
		k.known = k.c.ledgerAt
		version = strconv.Itoa(k.c.ledgerAt)
		return nil
	})
	return version, err
}

type rollouts struct{ *Client }

func (k rollouts) List(ctx context.Context) ([]controller.Rollout, error) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return lagging(k.Client, k.c.pastRollouts), ctx.Err()
}

func (k rollouts) Asked() string {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return strconv.Itoa(k.c.asked)
}

func (k rollouts) Store(ctx context.Context, read controller.Rollout, d rollout.Decisions) (controller.Rollout, time.Duration, error) {
	shown := Shown{Phase: d.Phase, Reason: d.Reason, Message: d.Message, Counts: d.Counts, Acknowledged: d.Acknowledged,
		Waiting: d.Waiting, Findings: d.Findings, Blocked: map[string]string{}}
	for _, n := range d.Nodes {
		if n.Why != nil && n.Why.Reason == rollout.ReasonBlocked {
			shown.Blocked[n.Node] = n.Why.Message
		}
	}
	uid := read.Policy.UID
	k.c.mu.Lock()
	r, ok := k.c.rollouts[uid]
	k.c.mu.Unlock()
	if ok && r.at == read.Version && reflect.DeepEqual(r.Progress, d.Progress) && reflect.DeepEqual(r.shown, shown) {
		return r.Rollout, 0, nil
	}
	err := k.write(ctx, "progress", uid, func() error {
		r, ok = k.c.rollouts[uid]
		if !ok || r.at != read.Version {
			return conflict("rollout", uid)
		}
		r.Progress, r.shown, r.at = d.Progress, shown, k.c.next()
		r.Version = r.at
		k.c.rollouts[uid] = r
		return nil
	})
	return r.Rollout, 0, err
}

func (k rollouts) Finish(ctx context.Context, read controller.Rollout) error {
	return k.write(ctx, "finish", read.Policy.UID, func() error {
		delete(k.c.rollouts, read.Policy.UID)
		return nil
	})
}

func (k rollouts) Gone(ctx context.Context, uid string) (bool, error) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	_, there := k.c.rollouts[uid]
	return !there, ctx.Err()
}

type fleet struct{ *Client }

func (k fleet) List(ctx context.Context) ([]controller.Node, error) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return lagging(k.Client, k.c.pastNodes), ctx.Err()
}

func (k fleet) Gone(ctx context.Context, name, uid string) (bool, error) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return k.c.nodes[name].UID != uid, ctx.Err()
}

func (k fleet) Annotate(ctx context.Context, read controller.Node, change map[string]*string) (n controller.Node, err error) {
	err = k.write(ctx, "mark", read.Name, func() error {
		n = k.c.nodes[read.Name]
		if n.UID != read.UID || n.Version != read.Version {
			return conflict("node", read.Name)
		}
		n.Annotations = changed(n.Annotations, change)
		n.Version = k.c.next()
		k.c.nodes[n.Name] = n
		return nil
	})
	return n, err
}

func changed(is map[string]string, change map[string]*string) map[string]string {
	next := maps.Clone(is)
	if next == nil {
		next = map[string]string{}
	}
	for key, value := range change {
		if value == nil {
			delete(next, key)
			continue
		}
		next[key] = *value
	}
	return next
}

type shadows struct{ *Client }

var _ controller.Shadows = shadows{}

func (k shadows) List(ctx context.Context) ([]controller.Shadow, error) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	seer := k.Client
	if k.ShadowLag != nil {
		seer = &Client{Lag: k.ShadowLag}
	}
	return append([]controller.Shadow(nil), lagging(seer, k.c.pastShadows)...), ctx.Err()
}

// Ended implements [controller.Shadows] by what is stored, and so may be ahead of List.
func (k shadows) Ended(slots []protocol.Slot) bool {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return slices.ContainsFunc(slots, func(s protocol.Slot) bool {
		sh, ok := k.c.shadows[s.Node]
		return ok && sh.UID == s.UID && controller.Ended(sh.Shadow.Shadow, s.Attempt)
	})
}

func (k shadows) Live(ctx context.Context) ([]controller.Shadow, error) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return append([]controller.Shadow(nil), lagging(&Client{}, k.c.pastShadows)...), ctx.Err()
}

func (k shadows) Get(ctx context.Context, node string) (controller.Shadow, error) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	sh, ok := k.c.shadows[node]
	if !ok {
		return controller.Shadow{}, fmt.Errorf("shadow %q: %w", node, fs.ErrNotExist)
	}
	return sh.Shadow, ctx.Err()
}

func (k shadows) Create(ctx context.Context, sh protocol.Shadow) (made controller.Shadow, err error) {
	err = k.write(ctx, "shadow", sh.Node, func() error {
		if _, there := k.c.shadows[sh.Node]; there {
			return conflict("shadow", sh.Node)
		}
		sh.Report = protocol.Report{}
		made = k.c.put(shadow{Shadow: controller.Shadow{Shadow: sh}})
		return nil
	})
	return made, err
}

// put stores a shadow as its next version.
func (c *Cluster) put(sh shadow) controller.Shadow {
	sh.at = c.next()
	sh.Version = sh.at
	c.shadows[sh.Node] = sh
	return sh.Shadow
}

func (k shadows) Order(ctx context.Context, read controller.Shadow, o protocol.Orders) (next controller.Shadow, err error) {
	err = k.write(ctx, "order", read.Node, func() error {
		sh, ok := k.c.shadows[read.Node]
		if !ok || sh.at != read.Version || sh.Deleting && o.Grant > sh.Orders.Grant {
			return conflict("shadow", read.Node)
		}
		sh.Orders = o
		next = k.c.put(sh)
		return nil
	})
	return next, err
}

func (k shadows) Delete(ctx context.Context, read controller.Shadow) error {
	return k.write(ctx, "unshadow", read.Node, func() error {
		sh, ok := k.c.shadows[read.Node]
		if !ok || sh.at != read.Version || !sh.Removable() {
			return conflict("shadow", read.Node)
		}
		delete(k.c.shadows, read.Node)
		return nil
	})
}

func (k shadows) Bury(ctx context.Context, read controller.Shadow) error {
	return k.write(ctx, "bury", read.Node, func() error {
		sh, ok := k.c.shadows[read.Node]
		if !ok || sh.at != read.Version || k.c.nodes[read.Node].UID == sh.UID {
			return conflict("shadow", read.Node)
		}
		delete(k.c.shadows, read.Node)
		return nil
	})
}
