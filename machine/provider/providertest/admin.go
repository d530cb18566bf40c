// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/belayproject/belay/internal/option"
)

// An Admin does with a [Server] what no provider can: it lets things go wrong, and sees what is there. Make it with [NewAdmin].
type Admin struct{ conn conn }

// NewAdmin makes one.
func NewAdmin(o Options) (*Admin, error) {
	c, err := newConn(o)
	if err != nil {
		return nil, fmt.Errorf("making an admin of a fake cloud: %w", err)
	}
	return &Admin{c}, nil
}

// Inject adds faults, which happen in this order.
func (a *Admin) Inject(ctx context.Context, faults ...Fault) error {
	if a.conn.http == nil {
		return option.NotMade("machine/provider/providertest.Admin.Inject", "machine/provider/providertest.NewAdmin")
	}
	for _, f := range faults {
		body, err := json.Marshal(f)
		if err == nil {
			err = a.conn.send(ctx, http.MethodPost, "/faults", body, &nothing{})
		}
		if err != nil {
			return named(err, "fake cloud: fault %q", f.Kind)
		}
	}
	return nil
}

// Faults are those that are still to happen.
func (a *Admin) Faults(ctx context.Context) ([]Fault, error) {
	var faults []Fault
	err := a.conn.send(ctx, http.MethodGet, "/faults", nil, &faults)
	return faults, named(err, "fake cloud: faults of %q", a.conn.url)
}

// Clear ends all faults. What they have done stays.
func (a *Admin) Clear(ctx context.Context) error {
	err := a.conn.send(ctx, http.MethodDelete, "/faults", nil, &nothing{})
	return named(err, "fake cloud: clear the faults of %q", a.conn.url)
}

// Inventory says what is there and what was asked.
func (a *Admin) Inventory(ctx context.Context) (Inventory, error) {
	var i Inventory
	err := a.conn.send(ctx, http.MethodGet, "/inventory", nil, &i)
	return i, named(err, "fake cloud: inventory of %q", a.conn.url)
}

// Instances are those of all clusters, by token.
func (a *Admin) Instances(ctx context.Context) ([]Host, error) {
	var hosts []Host
	err := a.conn.send(ctx, http.MethodGet, "/instances", nil, &hosts)
	return hosts, named(err, "fake cloud: instances of %q", a.conn.url)
}

// Lose destroys an instance with its disks at once, behind the back of whoever has it.
func (a *Admin) Lose(ctx context.Context, token string) error {
	err := a.conn.send(ctx, http.MethodDelete, "/instances/"+url.PathEscape(token), nil, &nothing{})
	return named(err, "fake cloud: lose %q", token)
}

// WriteDisk replaces what is on a disk: at most 64 KiB.
func (a *Admin) WriteDisk(ctx context.Context, id string, data []byte) error {
	err := a.conn.send(ctx, http.MethodPut, "/disks/"+url.PathEscape(id), data, &nothing{})
	return named(err, "fake cloud: write disk %q", id)
}

// ReadDisk returns what is on a disk.
func (a *Admin) ReadDisk(ctx context.Context, id string) ([]byte, error) {
	var data []byte
	err := a.conn.send(ctx, http.MethodGet, "/disks/"+url.PathEscape(id), nil, &data)
	return data, named(err, "fake cloud: read disk %q", id)
}
