// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// An Orphan is an instance of this cluster that no machine has as its own, or has retained.
type Orphan struct {
	Instance provider.Instance
	// Since is when it was seen first by this process, and Sightings how many surveys have found it since.
	Since     time.Time
	Sightings int
}

// An OrphanPolicy says what becomes of orphans. The zero value: they are reported.
type OrphanPolicy struct {
	// Retain stops orphans and keeps their disks, once they have been seen in two surveys and for After, and the store itself has no machine
	// that is their owner, or that has their token, or one of their disks. It never destroys a disk.
	Retain bool
	// After is how long an orphan must have been seen; 0 is an hour.
	After time.Duration
	// Expire destroys what was retained, by a machine that is gone, until a time that has passed. The store is asked as for Retain.
	Expire bool
}

// Survey asks the provider for its list. Call it once a period; one that fails is to be called again, backing off. Machines whose instance isn't as
// they know it are returned: they are to be reconciled.
func (c *Controller) Survey(ctx context.Context) ([]machine.Key, error) {
	if c.memory == nil {
		return nil, option.NotMade("machine/controller.Controller.Survey", "machine/controller.New")
	}
	begun := c.o.Now()
	// What is in the store after the list was begun may own what the list has; what is not in it by then, may not have been in it either.
	list, err := c.surveyProvider(ctx)
	if err != nil {
		return nil, err
	}
	machines, err := c.o.Machines.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list machines: %w", err)
	}
	byToken := map[string]provider.Instance{}
	for _, i := range list {
		if i.Owner.Cluster == c.o.Cluster {
			byToken[i.Token] = i
		}
	}
	c.mu.Lock()
	c.list, c.listed = byToken, begun
	c.mu.Unlock()
	owned := map[string]bool{}
	var changed []machine.Key
	for _, m := range machines {
		for _, t := range tokens(m) {
			owned[t] = true
		}
		if i, ok := byToken[m.Token]; m.Instance != nil && (!ok || i.State != m.Instance.State || i.ProviderID != m.Instance.ProviderID) {
			changed = append(changed, m.Key)
		}
	}
	return changed, c.tend(ctx, byToken, owned)
}

func (c *Controller) surveyProvider(ctx context.Context) ([]provider.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
	defer cancel()
	list, err := c.o.Provider.List(ctx, provider.Scope{Cluster: c.o.Cluster})
	if err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	return list, nil
}

// tokens are those that a machine answers for.
func tokens(m machine.Machine) []string {
	all := []string{m.Token, provider.TokenOf(m.Spec.ProviderID), m.Spec.Adopt}
	for _, r := range m.Retained {
		all = append(all, r.Token)
	}
	return all
}

// Orphans returns those of the last survey, sorted by token.
func (c *Controller) Orphans() []Orphan {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Orphan, 0, len(c.orphans))
	for _, o := range c.orphans {
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b Orphan) int { return cmp.Compare(a.Instance.Token, b.Instance.Token) })
	return all
}

// tend keeps count of orphans, and ends those that the policy is for.
func (c *Controller) tend(ctx context.Context, list map[string]provider.Instance, owned map[string]bool) error {
	c.sight(list, owned)
	var errs []error
	orphans := c.Orphans()
	for _, o := range orphans {
		if err := c.endOrphan(ctx, o); err != nil {
			errs = append(errs, err)
		}
	}
	if count := c.o.Metrics.Orphans; count != nil {
		count(len(orphans))
	}
	return errors.Join(errs...)
}

func (c *Controller) sight(list map[string]provider.Instance, owned map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for token := range c.orphans {
		if _, there := list[token]; !there || owned[token] {
			delete(c.orphans, token)
		}
	}
	for token, i := range list {
		if owned[token] {
			continue
		}
		if c.orphans[token] == nil {
			c.orphans[token] = &Orphan{Since: c.o.Now()}
		}
		c.orphans[token].Instance = i
		c.orphans[token].Sightings++
	}
}

// endOrphan ends one, if the policy says so and the store itself, asked now, has nobody who owns it.
func (c *Controller) endOrphan(ctx context.Context, o Orphan) error {
	mode, due := c.o.Orphans.of(o, c.o.Now())
	if !due {
		return nil
	}
	i := o.Instance
	ctx, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
	defer cancel()
	if owned, err := c.owned(ctx, i); err != nil || owned {
		return err
	}
	if _, err := c.o.Provider.Delete(ctx, provider.DeleteRequest{Ref: i.Ref(), Mode: mode, Cluster: c.o.Cluster}); err != nil {
		return fmt.Errorf("end the orphan %q: %w", i.Token, err)
	}
	return nil
}

// owned asks the store itself whether any machine answers for an instance: its owner, wherever it is, or one that has taken it over.
func (c *Controller) owned(ctx context.Context, i provider.Instance) (bool, error) {
	m, err := c.o.Machines.Live(ctx, machine.Key{Namespace: i.Owner.Namespace, Name: i.Owner.Name})
	switch {
	case err == nil && answersFor(m, i):
		return true, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("look for the owner of instance %q: %w", i.Token, err)
	}
	all, err := c.o.Machines.ListLive(ctx)
	if err != nil {
		return false, fmt.Errorf("look for who has taken over instance %q: %w", i.Token, err)
	}
	return slices.ContainsFunc(all, func(m machine.Machine) bool { return answersFor(m, i) }), nil
}

// answersFor reports whether an instance is a machine's own, or has one of its disks.
func answersFor(m machine.Machine, i provider.Instance) bool {
	if m.UID == i.Owner.UID || slices.Contains(tokens(m), i.Token) {
		return true
	}
	var disks []provider.Disk
	if m.Instance != nil {
		disks = m.Instance.Disks
	}
	for _, r := range m.Retained {
		disks = slices.Concat(disks, r.Disks)
	}
	return slices.ContainsFunc(disks, func(d provider.Disk) bool {
		return d.ID != "" && slices.ContainsFunc(i.Disks, func(own provider.Disk) bool { return own.ID == d.ID })
	})
}

// of says whether an orphan's time has come, and what becomes of its disks.
func (policy OrphanPolicy) of(o Orphan, now time.Time) (mode provider.Mode, due bool) {
	after := policy.After
	if after <= 0 {
		after = time.Hour
	}
	i := o.Instance
	if o.Sightings < 2 {
		return provider.Retain, false
	}
	if i.State == provider.Retained {
		return provider.Destroy, policy.Expire && !i.Until.IsZero() && !now.Before(i.Until)
	}
	return provider.Retain, policy.Retain && now.Sub(o.Since) >= after
}
