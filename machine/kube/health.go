// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// A doctor knows the conditions of Nodes, and since when it has seen them so.
type doctor struct {
	nodes *nodeStore
	now   func() time.Time

	mu   sync.Mutex
	seen map[string]map[string]machine.Condition // by token, then by type; a Node that is gone has the type ""
}

// NewDoctor returns what knows the conditions of Nodes, and since when it has seen them so. That is lost with the
// process: times begin anew. An error says that nodes is missing.
func NewDoctor(nodes Nodes) (controller.Doctor, error) {
	if err := option.CheckRequired("machine/kube.NewDoctor", "nodes", nodes, "see NewNodes"); err != nil {
		return nil, err
	}
	return &doctor{nodes: nodes.asStore(), now: time.Now, seen: map[string]map[string]machine.Condition{}}, nil
}

// Health implements [controller.Doctor].
func (d *doctor) Health(_ context.Context, machines []machine.Machine) (map[machine.Key]machine.NodeHealth, bool) {
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
func (d *doctor) look(token string) machine.NodeHealth {
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
func (d *doctor) since(token, kind, status string) machine.Condition {
	c, ok := d.seen[token][kind]
	if !ok || c.Status != status {
		c = machine.Condition{Type: kind, Status: status, Since: d.now()}
		d.seen[token][kind] = c
	}
	return c
}
