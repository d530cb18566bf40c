// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/protocol"
)

// CordonAnnotation is the mark of the drainer: the attempt for which the node is cordoned. wasAnnotation says that it was cordoned before.
const (
	CordonAnnotation = "controllertest.belay.dev/cordon"
	wasAnnotation    = "controllertest.belay.dev/was"
)

// stepTime is how long a step of a drain takes.
const stepTime = time.Second

type drainer struct{ *Client }

func (k drainer) Held(annotations map[string]string) (int64, bool) { return heldFor(annotations) }

func heldFor(annotations map[string]string) (int64, bool) {
	attempt, err := strconv.ParseInt(annotations[CordonAnnotation], 10, 64)
	return attempt, err == nil
}

func (k drainer) Cordon(ctx context.Context, node, uid string, attempt int64, drains bool) (bool, error) {
	return k.CordonWith(ctx, node, uid, attempt, drains, nil)
}

// CordonWith implements [controller.MarkingDrainer].
func (k drainer) CordonWith(ctx context.Context, node, uid string, attempt int64, _ bool,
	annotate func(map[string]string) (map[string]*string, bool),
) (bool, error) {
	text := strconv.FormatInt(attempt, 10)
	err := k.write(ctx, "cordon", node, func() error {
		n := k.c.nodes[node]
		if later, held := heldFor(n.Annotations); n.UID != uid || held && later > attempt {
			return conflict("node", node)
		}
		change := map[string]*string{CordonAnnotation: &text}
		if annotate != nil {
			others, ok := annotate(n.Annotations)
			if !ok {
				return errLeft
			}
			maps.Copy(change, others)
		}
		if _, held := n.Annotations[CordonAnnotation]; !held && n.Unschedulable {
			yes := "true"
			change[wasAnnotation] = &yes
		}
		n.Annotations, n.Unschedulable, n.Version = changed(n.Annotations, change), true, k.c.next()
		k.c.nodes[node] = n
		return nil
	})
	if errors.Is(err, errLeft) {
		return false, nil
	}
	return err == nil, err
}

// errLeft means that nothing was to be written.
var errLeft = errors.New("the node is to be left alone")

func (k drainer) Drain(ctx context.Context, node, uid string, attempt int64, force bool) (empty bool, blocked string, after time.Duration, err error) {
	after = stepTime
	err = k.write(ctx, "evict", node, func() error {
		n := k.c.nodes[node]
		if is, held := heldFor(n.Annotations); n.UID != uid || !held || is != attempt {
			return conflict("node", node)
		}
		if len(k.c.pods[node]) == 0 {
			empty, after = true, 0
			return nil
		}
		k.c.evicts(n, attempt)
		left := slices.DeleteFunc(slices.Clone(k.c.pods[node]), func(p pod) bool { return !p.stuck || force })
		if k.c.pods[node] = left; len(left) > 0 {
			blocked = `pod "shop/web-0" is kept by budget "web" since ` + n.Created.UTC().Format(time.RFC3339)
		}
		return nil
	})
	return empty, blocked, after, err
}

// evicts checks that the node may be emptied.
func (c *Cluster) evicts(n controller.Node, attempt int64) {
	s, sh := c.ledger.Slot(n.UID), c.shadows[n.Name]
	switch {
	case s == nil:
		c.breaks("pods of node %q are evicted for attempt %d, and it has no slot", n.Name, attempt)
	case int64(s.Attempt) != attempt || sh.Report.Attempt != s.Attempt || sh.Report.Phase != protocol.PhaseCommitted:
		c.breaks("pods of node %q are evicted for attempt %d; its slot is of %d, its agent is %q in %d",
			n.Name, attempt, s.Attempt, sh.Report.Phase, sh.Report.Attempt)
	}
}

func (k drainer) Release(ctx context.Context, node, uid string, attempt int64) (bool, error) {
	k.c.mu.Lock()
	n := k.c.nodes[node]
	is, held := heldFor(n.Annotations)
	k.c.mu.Unlock()
	if n.UID != uid || !held || is > attempt {
		return true, ctx.Err()
	}
	err := k.write(ctx, "uncordon", node, func() error {
		n := k.c.nodes[node]
		if is, held := heldFor(n.Annotations); n.UID != uid || !held || is > attempt {
			return nil
		}
		n.Unschedulable = n.Annotations[wasAnnotation] == "true"
		n.Annotations = changed(n.Annotations, map[string]*string{CordonAnnotation: nil, wasAnnotation: nil})
		n.Version = k.c.next()
		k.c.nodes[node] = n
		return nil
	})
	return err == nil, err
}

type health struct{ *Client }

func (k health) Baseline(ctx context.Context, n controller.Node) (string, error) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return strconv.Itoa(len(k.c.pods[n.Name])), ctx.Err()
}

func (k health) Verdict(_ context.Context, n controller.Node, baseline string) rollout.Verdict {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	if sick := k.c.behavior[n.Name].Sick; sick != "" && baseline == "" {
		return rollout.Verdict{From: "pods", Answer: rollout.Deny, Reason: "PodUnhealthy", Message: sick}
	}
	if want, err := strconv.Atoi(baseline); err == nil && len(k.c.pods[n.Name]) < want {
		message := fmt.Sprintf("%d of %d pods are back", len(k.c.pods[n.Name]), want)
		return rollout.Verdict{From: "pods", Answer: rollout.Deny, Reason: "WorkMissing", Message: message}
	}
	return rollout.Verdict{Answer: rollout.Allow}
}

// Agents has every agent do the next thing that it has to do, and lets pods come back to nodes that are open.
func (c *Cluster) Agents() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		n, b := c.nodes[name], c.behavior[name]
		if !n.Unschedulable && !b.Bare && len(c.pods[name]) < podsPerNode {
			c.pods[name] = make([]pod, podsPerNode)
		}
		if sh, ok := c.shadows[name]; ok && sh.UID == n.UID && !b.Silent {
			c.agent(sh, b)
		}
	}
	c.keep()
	c.check("agents")
}

// agent takes one step on the live version of its shadow.
func (c *Cluster) agent(sh shadow, b Behavior) {
	sh.Runs = c.current[sh.UID]
	if !sh.Report.Known {
		sh.Report, _ = protocol.Recall(sh.Shadow.Shadow, c.disks[sh.UID])
		c.put(sh)
		return
	}
	event := nextOf(sh.Shadow.Shadow, b)
	report, err := sh.Answer(event)
	if err != nil {
		return
	}
	c.does(sh, event, report)
	sh.Report, sh.Runs, c.disks[sh.UID] = report, c.current[sh.UID], report
	c.put(sh)
}

// does is what an event of an agent means for its node.
func (c *Cluster) does(sh shadow, event protocol.Event, report protocol.Report) {
	switch event {
	case protocol.EventCommit:
		if s := c.ledger.Slot(sh.UID); !c.o.Lossy && (s == nil || s.Attempt != report.Attempt) {
			c.breaks("node %q commits attempt %d; its slot is %+v", sh.Node, report.Attempt, s)
		}
	case protocol.EventApply:
		key := fmt.Sprintf("%s/%d", sh.UID, report.Attempt)
		if c.applied[key]++; c.applied[key] > 1 {
			c.breaks("attempt %d of node %q is applied %d times", report.Attempt, sh.Node, c.applied[key])
		}
		c.updates[sh.Node+" "+protocol.ParseRevision(report.Revision).Name]++
	case protocol.EventApplied:
		c.current[sh.UID] = protocol.ParseRevision(report.Revision)
	}
}

// nextOf is what an agent does next.
func nextOf(sh protocol.Shadow, b Behavior) protocol.Event {
	r := sh.Report
	switch {
	case sh.Open() && (r.Phase.AtRest() || r.Phase == protocol.PhaseFailedBroken):
		if b.Refusing {
			return protocol.EventRefuse
		}
		return protocol.EventCommit
	case r.Phase == protocol.PhaseCommitted && sh.Orders.Undo >= r.Attempt:
		return protocol.EventUndone
	case r.Phase == protocol.PhaseCommitted:
		return protocol.EventApply
	case r.Phase == protocol.PhaseApplying:
		if b.Fails != nil {
			if e := b.Fails(protocol.ParseRevision(r.Revision).Name); e != "" {
				return e
			}
		}
		return protocol.EventApplied
	case r.Phase == protocol.PhaseVerifying:
		return protocol.EventVerified
	}
	return protocol.EventStaged
}
