// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

type nodeConditionReporter struct {
	caller
	target target

	mu      sync.Mutex
	renewed *time.Time // StartedAt of the last report that the API server holds; guarded by mu
	last    *reported  // what it has acknowledged last; nil means that the Node has to be read; guarded by mu
}

// reported is the condition of the Node with that UID. A reported does not change.
type reported struct {
	uid       string
	condition corev1.NodeCondition
	at        time.Time // monotonic: when the API server said so
}

// NewNodeConditionReporter returns what reports the ConfigOK condition of a Node, with the literal texts: the message
// is the effect, the reason is the cause.
//
// There is one entry of that type, and this reporter owns it alone: other conditions are left as they are. The
// heartbeat time is renewed by the first report after each start, and by each report of another condition; the
// transition time moves only when the status, the reason or the message is another. Otherwise nothing is written.
//
// News are written without reading the Node before, to the Node with the UID that the reporter knows. That nothing is
// to be written is said of a Node that was just read, or was read or written within Options.Reread.
//
// It may be used concurrently; of two reports at once, either may win.
func NewNodeConditionReporter(client dynamic.Interface, node string, o Options) (configsync.Reporter, error) {
	c, err := newNodeCaller("configsync/kube.NewNodeConditionReporter", client, node, o)
	if err != nil {
		return nil, fmt.Errorf("making a node condition reporter: %w", err)
	}
	return &nodeConditionReporter{caller: c, target: nodeOf(node)}, nil
}

// Report makes the condition of s that of the Node. Errors wrap [configsync.ErrMissing] where there is no Node,
// [configsync.ErrForbidden], [ErrDropped], and [configsync.ErrUnreachable]
// where there was no answer.
func (r *nodeConditionReporter) Report(ctx context.Context, s configsync.Status) error {
	if s.Condition.Status == "" {
		return fmt.Errorf("reporting to %s: %w", r.target, errNoCondition)
	}
	err := unhurried(ctx, func(ctx context.Context) error { return r.report(ctx, s) })
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.renewed = &s.StartedAt
	r.mu.Unlock()
	return nil
}

func (r *nodeConditionReporter) report(ctx context.Context, s configsync.Status) error {
	err := r.news(ctx, s)
	if !errors.Is(err, errUnread) {
		return err
	}
	u, err := r.get(ctx, r.target)
	if err != nil {
		return err
	}
	live, found := configOK(u)
	want := nodeCondition(s.Condition, r.now())
	same := found && sameCondition(want, live)
	if same {
		want.LastTransitionTime = live.LastTransitionTime
	}
	if same && r.isRenewed(s.StartedAt) {
		r.keep(&reported{string(u.GetUID()), live, time.Now()})
		return nil
	}
	return r.write(ctx, asRead(u), want)
}

// errUnread means that the Node has to be read first.
var errUnread = errors.New("the Node was not read")

// news writes what differs from the last report, whatever else was written to the Node meanwhile: the kubelet does
// that all the time.
func (r *nodeConditionReporter) news(ctx context.Context, s configsync.Status) error {
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()
	want := nodeCondition(s.Condition, r.now())
	if last == nil {
		return errUnread
	}
	if sameCondition(want, last.condition) {
		switch renewed := r.isRenewed(s.StartedAt); {
		case renewed && time.Since(last.at) < r.reread:
			return nil
		case renewed:
			return errUnread // nothing to write, unless others have written
		}
		want.LastTransitionTime = last.condition.LastTransitionTime
	}
	err := r.write(ctx, only{uid: last.uid}, want)
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return errUnread // another Node has the name now
	}
	return err
}

// isRenewed says whether the start was reported by this reporter. A new process doesn't know, and so renews.
func (r *nodeConditionReporter) isRenewed(startedAt time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.renewed != nil && r.renewed.Equal(startedAt)
}

func (r *nodeConditionReporter) write(ctx context.Context, o only, want corev1.NodeCondition) error {
	r.keep(nil) // it may land and be lost
	entry, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want)
	if err != nil {
		return fmt.Errorf("encoding the condition of %s: %w", r.target, err)
	}
	got, err := r.applyStatus(ctx, r.target, o, map[string]any{"conditions": []any{entry}})
	if err != nil {
		return err
	}
	live, found := configOK(got)
	if !found || !sameCondition(want, live) {
		return fmt.Errorf("applying the condition %s of %s: %w", lkg.ConditionType, r.target, ErrDropped)
	}
	r.keep(&reported{string(got.GetUID()), live, time.Now()})
	return nil
}

func (r *nodeConditionReporter) keep(last *reported) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = last
}

func nodeCondition(c lkg.Condition, now time.Time) corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: lkg.ConditionType, Status: corev1.ConditionStatus(c.Status),
		Reason: clip(c.Reason, maxText), Message: clip(c.Message, maxText),
		LastHeartbeatTime: seconds(now), LastTransitionTime: seconds(now),
	}
}

func sameCondition(a, b corev1.NodeCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// configOK finds the condition in a Node.
func configOK(u *unstructured.Unstructured) (corev1.NodeCondition, bool) {
	var status corev1.NodeStatus
	raw, _, err := unstructured.NestedMap(u.Object, "status")
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &status) != nil {
		return corev1.NodeCondition{}, false
	}
	for _, c := range status.Conditions {
		if c.Type == lkg.ConditionType {
			return c, true
		}
	}
	return corev1.NodeCondition{}, false
}
