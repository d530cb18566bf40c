// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

var _ controller.Doctor = (*Doctor)(nil)

// A Doctor knows the conditions of Nodes, and since when it has seen them so. Make it with [NewDoctor].
type Doctor struct {
	nodes *Nodes
	now   func() time.Time

	mu   sync.Mutex
	seen map[string]map[string]machine.Condition // by token, then by type; a Node that is gone has the type ""
}

// NewDoctor returns one. What it has seen is lost with the process: times begin anew. Without nodes it knows no Node.
func NewDoctor(nodes *Nodes) *Doctor {
	return &Doctor{nodes: nodes, now: time.Now, seen: map[string]map[string]machine.Condition{}}
}

// Health implements [controller.Doctor].
func (d *Doctor) Health(_ context.Context, machines []machine.Machine) (map[machine.Key]machine.NodeHealth, bool) {
	if d.nodes == nil {
		return nil, false
	}
	if d.nodes.away() != nil || !d.nodes.Synced() {
		return nil, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	health, living := map[machine.Key]machine.NodeHealth{}, map[string]bool{}
	for _, m := range machines {
		if m.Token == "" {
			continue
		}
		living[m.Token] = true
		health[m.Key] = d.look(m.Token)
	}
	for token := range d.seen {
		if !living[token] {
			delete(d.seen, token)
		}
	}
	return health, true
}

// look is called with the lock.
func (d *Doctor) look(token string) machine.NodeHealth {
	if d.seen[token] == nil {
		d.seen[token] = map[string]machine.Condition{}
	}
	found, err := d.nodes.store.ByIndex(byToken, token)
	if err != nil || len(found) == 0 {
		gone := d.since(token, "", "")
		return machine.NodeHealth{Gone: true, Since: gone.Since}
	}
	delete(d.seen[token], "")
	var h machine.NodeHealth
	if n, ok := found[0].(*corev1.Node); ok {
		for _, c := range n.Status.Conditions {
			h.Conditions = append(h.Conditions, d.since(token, string(c.Type), string(c.Status)))
		}
	}
	return h
}

// since is a condition with the time since when it was seen so.
func (d *Doctor) since(token, kind, status string) machine.Condition {
	c, ok := d.seen[token][kind]
	if !ok || c.Status != status {
		c = machine.Condition{Type: kind, Status: status, Since: d.now()}
		d.seen[token][kind] = c
	}
	return c
}
