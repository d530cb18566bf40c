// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/examples/drain/internal/report"
	"github.com/belayproject/belay/examples/internal/drain/settings"
)

// app is one run of the command.
type app struct {
	out, errs *os.File
	own       parts
	exit      func(code int) // ends the process at the second Ctrl-C
	id        runID
}

// policy returns the policy of the command line, with the program's own rules before those of the file.
func (a *app) policy(s *settings.Pods) (drain.Policy, error) {
	policy, err := s.Policy()
	policy.Rules = slices.Concat(a.own.rules, policy.Rules)
	return policy, err
}

// plan prints what a drain would do, and changes nothing.
func (a *app) plan(ctx context.Context, s *settings.Plan, dry settings.DryRun, requireFit bool) error {
	policy, err := a.policy(&s.Pods)
	if err != nil {
		return err
	}
	tell := a.tellerFor(s.JSON())
	ctx, end := a.watchSignals(ctx, tell)
	defer end()
	a.quietLog(&s.Connection)
	c, err := connect(ctx, &s.Connection, tell, needs{
		policy: policy, responders: s.Responders.Known, own: a.own.responders,
		deletes: s.DisableEviction, overdue: time.Duration(s.SkipDeleted) * time.Second, placement: true,
	})
	if err != nil {
		return err
	}
	defer c.close()
	names, err := c.names(&s.Nodes)
	if err != nil {
		return err
	}
	result, err := c.makePlan(ctx, policy, dry, names)
	if err != nil {
		return wrong(err)
	}
	found, err := c.drainer.Preflight(ctx, policy, names...)
	if err != nil {
		return wrong(err)
	}
	p := report.PlanOf(result, found)
	if err := a.addMisfits(ctx, c, &p, result, requireFit); err != nil {
		return err
	}
	text := p.Text(time.Now())
	if s.JSON() {
		if text, err = p.JSON(); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprint(a.out, text); err != nil {
		return err
	}
	if p.Stands() || requireFit && len(p.Misfits) > 0 {
		return &codedError{code: exitBlocked}
	}
	return nil
}

// addMisfits adds to a plan where replacements fit nowhere. A plan without that estimate is a plan, unless it is
// required.
func (a *app) addMisfits(ctx context.Context, c *cluster, p *report.Plan, of drain.Result, required bool) error {
	misfits, err := kube.EstimateFit(ctx, c.clientset, c.cache, of)
	if err != nil && (required || ctx.Err() != nil) {
		return err
	}
	if err != nil {
		fmt.Fprintln(a.errs, "drain: where replacements fit is not known:", err)
	}
	p.AddMisfits(misfits)
	return nil
}

// drain empties nodes and leaves them cordoned, or gives them back at the end.
func (a *app) drain(ctx context.Context, s *settings.Drain) error {
	policy, err := a.policy(&s.Pods)
	if err != nil {
		return err
	}
	now := time.Now()
	set := drain.Set{SkipFailed: s.SkipFailed, LeaveOpen: s.LeaveOpen, NodeTimeout: s.NodeTimeout, MaxNodes: s.Max(), Request: drain.Request{
		Holder: s.Holder.Name, Maintenance: cmp.Or(s.Maintenance, now.UTC().Format(time.RFC3339Nano)), Mode: drain.Drain, Policy: policy,
		Run: a.id.String(), TakeOver: a.takeOver(s.TakeOver),
	}}
	if s.Timeout > 0 {
		set.Request.Deadline = now.Add(s.Timeout)
	}
	if s.DisableEviction {
		fmt.Fprintln(a.errs, "drain: warning: --disable-eviction deletes the pods, past every PodDisruptionBudget")
	}
	rate := drain.SchedulerOptions{Rate: s.Rate, Burst: max(1, int(2*s.Rate))}
	return a.run(ctx, task{
		connection: &s.Connection, nodes: s.Nodes, json: s.JSON(), set: set, limits: rate, responders: s.Responders.Known,
		releaseAfter: s.ReleaseAfter, deletes: s.DisableEviction, overdue: time.Duration(s.SkipDeleted) * time.Second,
		conditions: s.NodeConditions,
	})
}

// hold renews the Leases of nodes until the time is over.
func (a *app) hold(ctx context.Context, s *settings.Hold) error {
	now := time.Now()
	set := drain.Set{Request: drain.Request{
		Holder: s.Holder.Name, Maintenance: now.UTC().Format(time.RFC3339Nano), Mode: drain.Hold, HoldUntil: now.Add(s.For),
		Policy: drain.Policy{Soak: s.Soak}, Run: a.id.String(), TakeOver: a.takeOver(s.TakeOver),
	}}
	return a.run(ctx, task{connection: &s.Connection, nodes: s.Nodes, json: s.JSON(), set: set,
		releaseAfter: s.ReleaseAfter, conditions: s.NodeConditions})
}

// release gives nodes back.
func (a *app) release(ctx context.Context, s *settings.Release) error {
	set := drain.Set{MaxNodes: intstr.FromString("100%"), Request: drain.Request{
		Holder: s.Holder.Name, Mode: drain.Release, Policy: drain.Policy{Soak: s.Soak},
	}}
	return a.run(ctx, task{connection: &s.Connection, nodes: s.Nodes, json: s.JSON(), set: set,
		conditions: s.NodeConditions})
}

// resume lets the holder's drains go on.
func (a *app) resume(ctx context.Context, s *settings.Resume) error {
	tell := a.tellerFor(false)
	ctx, end := a.watchSignals(ctx, tell)
	defer end()
	a.quietLog(&s.Connection)
	c, err := connect(ctx, &s.Connection, tell, needs{own: a.own.responders})
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.drainer.Resume(ctx, s.Holder.Name); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "Nothing stops the drains of %s any more.\n", s.Holder.Name)
	return err
}

// flags are the names that people know of the fields that the library checks.
var flags = strings.NewReplacer("drain: request.holder", "--holder", "drain: request.maintenance", "--maintenance", "drain: request.policy.", "policy: ")

// wrong makes a usage error of what the library calls invalid.
func wrong(err error) error {
	if errors.Is(err, drain.ErrOption) {
		return settings.Usage(err)
	}
	return err
}

// names are the nodes that are meant. All of them exist.
func (c *cluster) names(n *settings.Nodes) ([]string, error) {
	if n.Selector == "" {
		var missing []string
		for _, name := range n.Names {
			if c.cache.Node(name) == nil {
				missing = append(missing, fmt.Sprintf("%q", name))
			}
		}
		if len(missing) > 0 {
			return nil, fmt.Errorf("there is no node %s; nothing was done", strings.Join(missing, ", "))
		}
		return n.Names, nil
	}
	selector, err := labels.Parse(n.Selector)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, node := range c.cache.Nodes() {
		if selector.Matches(labels.Set(node.Labels)) {
			names = append(names, node.Name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no node matches --selector=%q; nothing was done", n.Selector)
	}
	slices.Sort(names)
	return names, nil
}
