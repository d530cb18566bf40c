// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// How much of a text that others have written stands in a status; the rest is cut off. Who compares a status with a new one compares it as it is stored.
const (
	// MaxMessage is for sentences, in bytes.
	MaxMessage = 4096
	// MaxVersion is for what a Node reports, in bytes.
	MaxVersion = 256
)

// SetStatus makes the status that of c, and the conditions those of the status, of c's spec and of what the Node says now. For a nil Node they say what
// the status says alone. now is the time of conditions that change.
func (m *Machine) SetStatus(c machine.Machine, node *machine.Node, now time.Time) {
	conditions := m.Status.Conditions
	m.Status = statusOf(c.Status)
	m.Status.Conditions = slices.Clone(conditions)
	m.Status.setConditions(c, node, now)
}

func (s *MachineStatus) core() machine.Status {
	c := machine.Status{
		Phase: machine.Phase(s.Phase), Incarnation: s.Incarnation, Token: s.Token, Digest: s.Digest,
		ProviderDigest: s.ProviderDigest, Instance: s.Instance.core(),
		Versions: s.Versions.core(), Update: s.Update.core(), Release: s.Release.core(),
		Failure: s.Failure.core(), Observed: s.ObservedGeneration, Updated: timeOf(&s.LastUpdated),
	}
	if s.NodeRef != nil {
		c.Node = &machine.NodeRef{Name: s.NodeRef.Name, UID: s.NodeRef.UID}
	}
	if s.Step != nil {
		c.Step = machine.Step{Name: machine.StepName(s.Step.Name), Since: timeOf(&s.Step.Since), Blocker: s.Step.Blocker}
	}
	for _, r := range s.Retained {
		c.Retained = append(c.Retained, machine.Retained{
			Token: r.Token, ProviderID: r.ProviderID, Disks: disks(r.Disks), Since: timeOf(&r.Since), Until: timeOf(&r.Until), Back: r.Back,
		})
	}
	for _, n := range s.StrayNodes {
		c.Strays = append(c.Strays, machine.Stray{Token: n.Token, Name: n.Name, Since: timeOf(&n.Since), Blocker: n.Blocker, Left: n.Left})
	}
	return c
}

func statusOf(c machine.Status) MachineStatus {
	s := MachineStatus{
		ObservedGeneration: c.Observed, Phase: MachinePhase(c.Phase), Incarnation: c.Incarnation, Token: c.Token, Digest: c.Digest,
		ProviderDigest: c.ProviderDigest, Instance: instanceOf(c.Instance), Versions: reported(c.Versions), Update: updateOf(c.Update), Release: releaseOf(c.Release),
		Failure: failureOf(c.Failure), LastUpdated: second(c.Updated),
	}
	if n := c.Node; n != nil {
		s.NodeRef = &NodeRef{Name: n.Name, UID: n.UID}
	}
	if c.Step != (machine.Step{}) {
		s.Step = &MachineStep{Name: string(c.Step.Name), Since: second(c.Step.Since), Blocker: clip(c.Step.Blocker, MaxMessage)}
	}
	for _, r := range c.Retained {
		s.Retained = append(s.Retained, Retained{
			Token: r.Token, ProviderID: r.ProviderID, Disks: disksOf(r.Disks), Since: second(r.Since), Until: second(r.Until), Back: r.Back,
		})
	}
	for _, n := range c.Strays {
		s.StrayNodes = append(s.StrayNodes, StrayNode{
			Token: n.Token, Name: n.Name, Since: second(n.Since), Blocker: clip(n.Blocker, MaxMessage), Left: clip(n.Left, MaxMessage),
		})
	}
	if s.Failure != nil && c.Phase == machine.PhaseFailed {
		s.FailureReason, s.FailureMessage = s.Failure.Reason, s.Failure.Message
	}
	return s
}

func (i *Instance) core() *provider.Instance {
	if i == nil {
		return nil
	}
	c := &provider.Instance{
		Token: i.Token, ProviderID: i.ProviderID, State: provider.State(i.State), Digest: i.Digest, Disks: disks(i.Disks), Until: timeOf(&i.Until), Message: i.Message,
	}
	if i.Owner != nil {
		c.Owner = provider.Owner(*i.Owner)
	}
	for _, a := range i.Addresses {
		c.Addresses = append(c.Addresses, provider.Address(a))
	}
	return c
}

func instanceOf(c *provider.Instance) *Instance {
	if c == nil {
		return nil
	}
	i := &Instance{
		Token: c.Token, ProviderID: c.ProviderID, State: string(c.State), Digest: c.Digest, Disks: disksOf(c.Disks), Until: second(c.Until),
		Message: clip(c.Message, MaxMessage),
	}
	if c.Owner != (provider.Owner{}) {
		i.Owner = &InstanceOwner{Cluster: c.Owner.Cluster, Namespace: c.Owner.Namespace, Name: c.Owner.Name, UID: c.Owner.UID, Incarnation: c.Owner.Incarnation}
	}
	for _, a := range c.Addresses {
		i.Addresses = append(i.Addresses, Address(a))
	}
	return i
}

func disks(all []Disk) (c []provider.Disk) {
	for _, d := range all {
		c = append(c, provider.Disk(d))
	}
	return c
}

func disksOf(c []provider.Disk) (all []Disk) {
	for _, d := range c {
		all = append(all, Disk(d))
	}
	return all
}

func (u *MachineUpdate) core() *machine.Update {
	if u == nil {
		return nil
	}
	c := &machine.Update{Digest: u.Digest, Since: timeOf(&u.Since), Slot: u.Slot, Drained: u.Drained, BackedUp: u.BackedUp, Sent: u.Sent, Done: u.Done,
		Loan: u.Loan, Before: u.Before, Heard: u.Heard, Retry: u.Retry, Overrides: slices.Clone(u.Overrides)}
	if p := u.Plan; p != nil {
		c.Plan = provider.Plan{Method: provider.Method(p.Method), Reason: p.Reason, Disrupts: p.Disrupts, Lost: disks(p.Lost)}
	}
	return c
}

func updateOf(c *machine.Update) *MachineUpdate {
	if c == nil {
		return nil
	}
	u := &MachineUpdate{Digest: c.Digest, Since: second(c.Since), Slot: c.Slot, Drained: c.Drained, BackedUp: c.BackedUp, Sent: c.Sent, Done: c.Done,
		Loan: c.Loan, Before: c.Before, Heard: c.Heard, Retry: c.Retry, Overrides: clipped(c.Overrides)}
	if p := c.Plan; p.Method != "" || p.Reason != "" || p.Disrupts || len(p.Lost) > 0 {
		u.Plan = &UpdatePlan{Method: string(p.Method), Reason: clip(p.Reason, MaxMessage), Disrupts: p.Disrupts, Lost: disksOf(p.Lost)}
	}
	return u
}

func (r *MachineRelease) core() *machine.Release {
	if r == nil {
		return nil
	}
	return &machine.Release{
		Replace: r.Replace, Mode: provider.Mode(r.Mode), Since: timeOf(&r.Since), Gated: r.Gated, Slot: r.Slot, Loan: r.Loan, Hooked: r.Hooked, Drained: r.Drained,
		HooksBeforeStop: r.HooksBeforeStop, Left: r.Left, Stopped: r.Stopped, Released: r.Released, NodeGone: r.NodeGone,
		Begun: r.Begun, BackedUp: r.BackedUp, Conflict: r.Conflict, Overrides: slices.Clone(r.Overrides),
	}
}

func releaseOf(c *machine.Release) *MachineRelease {
	if c == nil {
		return nil
	}
	return &MachineRelease{
		Replace: c.Replace, Mode: DiskPolicy(c.Mode), Since: second(c.Since), Gated: c.Gated, Slot: c.Slot, Loan: c.Loan, Hooked: c.Hooked, Drained: c.Drained,
		HooksBeforeStop: c.HooksBeforeStop, Left: c.Left, Stopped: c.Stopped, Released: c.Released, NodeGone: c.NodeGone,
		Begun: c.Begun, BackedUp: c.BackedUp, Conflict: c.Conflict, Overrides: clipped(c.Overrides),
	}
}

func clipped(all []string) (texts []string) {
	for _, text := range all {
		texts = append(texts, clip(text, MaxMessage))
	}
	return texts
}

// reported are the versions that a Node says it has.
func reported(c provider.Versions) *Versions {
	v := versionsOf(c)
	if v == nil {
		return nil
	}
	v.Kubelet = clip(v.Kubelet, MaxVersion)
	if v.Runtime != nil {
		v.Runtime = &Runtime{Name: clip(v.Runtime.Name, MaxVersion), Version: clip(v.Runtime.Version, MaxVersion)}
	}
	for name, version := range v.Other {
		v.Other[name] = clip(version, MaxVersion)
	}
	return v
}

// clip makes a text that the API server stores as it is: valid, and not longer than that.
func clip(text string, limit int) string {
	if text = strings.ToValidUTF8(text, "\uFFFD"); len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
