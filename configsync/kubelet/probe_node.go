// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/configsync"
)

// maxMessage bounds what is repeated of a condition or a pod, in bytes.
const maxMessage = 200

// baselineForm is the number of the form of a baseline: another form has another number.
const baselineForm = 1

// readyProbe asks whether the Node is Ready and under no new pressure.
type readyProbe struct{ view *nodeView }

// nodeBaseline is what a Node was like before.
type nodeBaseline struct {
	Form  int                        `json:"form"`
	Bad   []corev1.NodeConditionType `json:"bad,omitempty"`   // sorted
	Ready string                     `json:"ready,omitempty"` // the heartbeat of Ready
}

// Name implements configsync.Probe.
func (*readyProbe) Name() string { return "node-ready" }

// NeedsServer says that the API server is asked.
func (*readyProbe) NeedsServer() bool { return true }

// Check implements configsync.Probe. Without a baseline every pressure counts.
func (p *readyProbe) Check(ctx context.Context) error {
	return p.judgeNode(ctx, nodeBaseline{}, "; whether it was before is not known")
}

// TakeBaseline names the conditions that are bad.
func (p *readyProbe) TakeBaseline(ctx context.Context) ([]byte, error) {
	node, err := p.view.readNode(ctx)
	if err != nil {
		return nil, err
	}
	b := nodeBaseline{Form: baselineForm}
	if node != nil {
		b.Ready = heartbeatOf(node)
		for _, c := range badConditions(node) {
			if c.Type != corev1.NodeReady { // without that it never comes back
				b.Bad = append(b.Bad, c.Type)
			}
		}
	}
	slices.Sort(b.Bad)
	return json.Marshal(b)
}

// Compare is Check but for the pressures that the baseline names.
func (p *readyProbe) Compare(ctx context.Context, baseline []byte, _ bool) error {
	var b nodeBaseline
	if err := json.Unmarshal(baseline, &b); err != nil || b.Form != baselineForm {
		return p.Check(ctx)
	}
	return p.judgeNode(ctx, b, "; it was not before")
}

func (p *readyProbe) judgeNode(ctx context.Context, before nodeBaseline, addition string) error {
	node, err := p.view.readNode(ctx)
	switch {
	case err != nil:
		return err
	case node == nil:
		return newFailure("there is no Node %q at the API server", p.view.name)
	}
	for _, c := range badConditions(node) {
		switch {
		case c.Type == corev1.NodeReady:
			return newFailure("the node is not ready: %s", clipMessage(c.Message))
		case !slices.Contains(before.Bad, c.Type):
			return newFailure("condition %s of the node is %s: %s%s", c.Type, c.Status, clipMessage(c.Message), addition)
		}
	}
	if before.Ready != "" && heartbeatOf(node) == before.Ready {
		return newFailure("the node has not said that it is ready since the config was adopted: its last word is of %s",
			before.Ready)
	}
	return nil
}

// badConditions are the conditions of a Node that are bad, Ready first: the rule of rollout/kube.Health. A Node that
// says nothing of it is not ready.
func badConditions(node *corev1.Node) []corev1.NodeCondition {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Message: "it does not say that it is"}
	var all []corev1.NodeCondition
	for _, c := range node.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady:
			ready = c
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable:
			if c.Status != corev1.ConditionFalse {
				all = append(all, c)
			}
		}
	}
	if ready.Status != corev1.ConditionTrue {
		all = slices.Insert(all, 0, ready)
	}
	return all
}

func clipMessage(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return s[:maxMessage] + "..."
}

// How long the API server may be without a heartbeat. A kubelet renews its Lease after a quarter of its duration,
// which is 40 s by default.
const (
	firstHeartbeat = 30 * time.Second // after the first look at a new run
	minHeartbeat   = time.Minute
	maxHeartbeat   = 5 * time.Minute
)

// heartbeatProbe asks whether the API server has had a heartbeat of the kubelet that runs now. What is compared are
// the values that the kubelet writes, never their times with a clock: so neither a clock that jumps nor one that is
// wrong matters.
type heartbeatProbe struct {
	view *nodeView
	pid  func() int

	mu      sync.Mutex
	run     int       // the process ID of the run that is looked at; -1: none yet
	looked  bool      // there was a look at this run
	last    string    // the heartbeat at the last look
	changed bool      // there was another one since the first look at this run
	since   time.Time // monotonic: the first look, or the last change
}

// Name implements configsync.Probe.
func (*heartbeatProbe) Name() string { return "heartbeat" }

// NeedsServer says that the API server is asked.
func (*heartbeatProbe) NeedsServer() bool { return true }

// Check implements configsync.Probe. It can't tell until there was a new heartbeat, or none for too long.
func (p *heartbeatProbe) Check(ctx context.Context) error {
	beat, limit, err := p.readHeartbeat(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.since = time.Now() // a kubelet can't reach an API server that is away either
		return err
	}
	run := 0
	if p.pid != nil {
		run = p.pid()
	}
	switch {
	case !p.looked || run != p.run:
		p.looked, p.run, p.last, p.changed, p.since = true, run, beat, false, time.Now()
	case beat != p.last:
		p.last, p.changed, p.since = beat, true, time.Now()
	}
	silent := time.Since(p.since).Round(time.Second)
	switch {
	case p.changed && silent <= limit:
		return nil
	case p.changed:
		return newFailure("the API server has had no heartbeat for %s, want one within %s; the last: %s", silent, limit, beat)
	case silent <= firstHeartbeat:
		return &finding{text: "the API server has had no heartbeat yet since the kubelet was started",
			is: configsync.ErrUndecided}
	}
	return newFailure("the API server has had no heartbeat in the %s since the kubelet was started; the last one: %s",
		silent, beat)
}

// readHeartbeat returns the newest heartbeats that the API server has, and within which time a new one must come.
func (p *heartbeatProbe) readHeartbeat(ctx context.Context) (beat string, limit time.Duration, err error) {
	node, err := p.view.readNode(ctx)
	if err != nil {
		return "", 0, err
	}
	lease, err := p.view.readLease(ctx)
	if err != nil {
		return "", 0, err
	}
	return fmt.Sprintf("Lease %s, Ready %s", renewedAt(lease), heartbeatOf(node)), heartbeatLimit(lease), nil
}

func renewedAt(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.RenewTime == nil {
		return "never"
	}
	return lease.Spec.RenewTime.UTC().Format(time.RFC3339Nano)
}

func heartbeatOf(node *corev1.Node) string {
	if node != nil {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.LastHeartbeatTime.UTC().Format(time.RFC3339)
			}
		}
	}
	return "never"
}

// heartbeatLimit allows for a Lease of more than the usual duration, up to a bound: what waits longer sees the node
// as lost.
func heartbeatLimit(lease *coordinationv1.Lease) time.Duration {
	var d time.Duration
	if lease != nil && lease.Spec.LeaseDurationSeconds != nil {
		d = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second * 3 / 2
	}
	return min(max(d, minHeartbeat), maxHeartbeat)
}
