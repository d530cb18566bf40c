// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/option"
)

// A NodeDrainer drains one node at a time for numbered attempts: it is the Drainer of rollout controllers. Each attempt is a maintenance of its
// own, of one holder. All fields but Policy and Forced are required; they must not change.
type NodeDrainer struct {
	Drainer *Drainer
	// Holder names who drains, the same in all processes: "rollout/workers".
	Holder string
	// Policy is how pods are treated, Forced how they are when the drain was told to go on past what is in its way. Nil means that there is no
	// more force than Policy has.
	Policy Policy
	Forced *Policy
}

// attemptPrefix begins the maintenance ID of an attempt.
const attemptPrefix = "attempt-"

// Held reads from the annotations of a Node for which attempt the holder has cordoned it. A maintenance of the holder that is no attempt
// counts as attempt 0.
func (n *NodeDrainer) Held(annotations map[string]string) (attempt int64, held bool) {
	m, err := markOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}})
	if err != nil {
		return 0, false
	}
	h := m.of(n.Holder)
	if h == nil || !h.Released.IsZero() {
		return 0, false
	}
	attempt, err = strconv.ParseInt(strings.TrimPrefix(h.Maintenance, attemptPrefix), 10, 64)
	if err != nil {
		attempt = 0
	}
	return attempt, true
}

// Cordon closes the Node of that UID for an attempt, unless it is closed for a later one. done is false as long as it is not; then it is to be
// called again soon. drains says that [NodeDrainer.Drain] follows at once: then the drain begins with the cordon, if it may, which saves a write.
// Otherwise it begins with the first Drain, and so do its escalation and whatever else counts from its beginning.
func (n *NodeDrainer) Cordon(ctx context.Context, node, uid string, attempt int64, drains bool) (done bool, err error) {
	if n.Drainer == nil || n.Drainer.registry == nil {
		return false, option.NotMade("drain.NodeDrainer.Cordon", "drain.New")
	}
	return n.CordonWith(ctx, node, uid, attempt, drains, nil)
}

// CordonWith is [NodeDrainer.Cordon], and has the write that enters the attempt on the Node change other annotations too. annotate is asked which, with
// those of the version that is written on; one with a nil value is removed. If it says that it is not ok, nothing is written, and done is false. It may be
// asked again where the Node has changed, and is not asked where the attempt is on the Node already.
func (n *NodeDrainer) CordonWith(ctx context.Context, node, uid string, attempt int64, drains bool,
	annotate func(annotations map[string]string) (change map[string]*string, ok bool),
) (done bool, err error) {
	if n.Drainer == nil || n.Drainer.registry == nil {
		return false, option.NotMade("drain.NodeDrainer.CordonWith", "drain.New")
	}
	if is, held := n.seen(node); held && is > attempt {
		return false, nil
	}
	r := n.request(node, uid, attempt, Cordon, n.Policy)
	r.annotate = annotate
	if drains {
		r.cordonFor = cordonAndDrain
	}
	st, _, err := n.Drainer.ReconcileRequest(ctx, r)
	if err == nil && st.Phase == Failed {
		err = n.failed(st)
	}
	return st.Phase == Cordoned && err == nil, err
}

// Drain makes one pass over a Node that is cordoned for the attempt; any other one is left alone. empty is what [Drained] means, but is
// not latched, unless [Options].NodeConditions is set: it was so when the server was asked, in this pass. blocked names the pod that is in the way for the longest time, and its budgets, or why
// the drain is paused; after is when to go on though nothing has changed.
func (n *NodeDrainer) Drain(ctx context.Context, node, uid string, attempt int64, force bool) (empty bool, blocked string, after time.Duration, err error) {
	if n.Drainer == nil || n.Drainer.registry == nil {
		return false, "", 0, option.NotMade("drain.NodeDrainer.Drain", "drain.New")
	}
	if is, held := n.seen(node); !held || is != attempt {
		return false, "", soon, nil
	}
	policy := n.Policy
	if force && n.Forced != nil {
		policy = *n.Forced
	}
	r := n.request(node, uid, attempt, Drain, policy)
	r.unlatched = true
	st, after, err := n.Drainer.ReconcileRequest(ctx, r)
	switch {
	case err != nil:
		return false, "", after, err
	case st.Phase == Failed:
		return false, "", after, n.failed(st)
	}
	if blocked = st.culprit(); blocked != "" && force && n.Forced == nil {
		blocked += "; it is to be forced, and there is no policy for that"
	}
	return st.Phase == Drained, blocked, after, nil
}

// Release takes the cordon of the attempt, or of an earlier one, off again, and leaves the Node as schedulable as it was before its first
// holder. That of a later attempt stays. done means that there is nothing more to take off, also by the server's word where the cache may be behind.
func (n *NodeDrainer) Release(ctx context.Context, node, uid string, attempt int64) (done bool, err error) {
	if n.Drainer == nil || n.Drainer.registry == nil {
		return false, option.NotMade("drain.NodeDrainer.Release", "drain.New")
	}
	if is, held := n.seen(node); held && is > attempt {
		return true, nil
	}
	st, _, err := n.Drainer.ReconcileRequest(ctx, n.request(node, uid, attempt, Release, Policy{}))
	return st.Phase == Released && err == nil, err
}

// seen is Held of the newest state of the Node that this process knows.
func (n *NodeDrainer) seen(node string) (int64, bool) {
	is := n.Drainer.registry.newest(n.Drainer.o.Cache, node)
	if is == nil {
		return 0, false
	}
	return n.Held(is.Annotations)
}

func (n *NodeDrainer) request(node, uid string, attempt int64, mode Mode, policy Policy) Request {
	return Request{
		Node: node, NodeUID: types.UID(uid), Holder: n.Holder, Maintenance: attemptPrefix + strconv.FormatInt(attempt, 10), Mode: mode, Policy: policy,
	}
}

func (n *NodeDrainer) failed(st Status) error {
	if err := missingNode(st); err != nil {
		return fmt.Errorf("%s: %w", st.Mode, err)
	}
	return fmt.Errorf("%s of node %q: %w", st.Mode, st.Node, errors.New(cmp.Or(st.Message, string(st.Reason))))
}

// culprit says what keeps the node from being empty until somebody acts or a budget allows more, or "".
func (s Status) culprit() string {
	if s.Phase == Paused {
		return cmp.Or(s.Message, string(s.Reason))
	}
	i := slices.IndexFunc(s.Blockers, func(b Blocker) bool {
		return b.Action == Block || slices.Contains([]Reason{BudgetExhausted, BudgetStale, BudgetContended}, b.Reason)
	})
	if i < 0 {
		return ""
	}
	b := s.Blockers[i]
	text := fmt.Sprintf("pod %q is %s since %s: %s", b.PodRef, b.Reason, b.Since.UTC().Format(time.RFC3339), b.Message)
	if len(b.Budgets) > 0 {
		text += fmt.Sprintf(" (budget %q)", strings.Join(b.Budgets, ", "))
	}
	return text
}
