// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/option"
)

const (
	// catchUpTime is how long a dry run waits for the cache to show a pod that the server has.
	catchUpTime = 500 * time.Millisecond
	// catchUpInterval is the time between two looks at the cache meanwhile.
	catchUpInterval = 20 * time.Millisecond
)

// Plan is the dry run: what a drain of these nodes under the policy would decide if it began now. It decides on the
// cache, as the drain does, and lists the pods of each node from the server beside it: a [CacheError] says that the
// cache does not show them all. It writes nothing. Of a drain under way it knows nothing: for that, look at its
// [Status].
func (d *Drainer) Plan(ctx context.Context, policy Policy, nodes ...string) (Result, error) {
	if d == nil || d.registry == nil {
		return Result{}, option.NotMade("drain.Drainer.Plan", "drain.New")
	}
	s, err := d.dryRun(ctx, policy, nodes)
	if err != nil {
		return Result{}, fmt.Errorf("planning a drain: %w", err)
	}
	return planSnapshot(d, s, policy), nil
}

// planSnapshot plans, and blocks the pods that name a responder which d does not have.
func planSnapshot(d *Drainer, s Snapshot, policy Policy) Result {
	r := Plan(s, policy, d.o.Now())
	for i := range r.Nodes {
		d.unknownHooks(&r.Nodes[i])
	}
	return r
}

// ProvePlan is [Drainer.Plan] with each eviction judged by the API server: it sends each one that the plan would send
// now as a server-side dry run, which runs admission and stores nothing, and plans again with the answers. A pod whose
// eviction is refused is then blocked, or waits, as in the drain, with the server's words; its share of a budget goes
// to the others, which are judged in turn. Where an admission webhook does not support dry runs, or the right to create
// pods/eviction is missing, the pod stays one that leaves, and its message begins with "not proven". At most 8 requests
// are under way.
//
// It needs a Client with a method DryRunEvict(ctx, PodRef) error, as that of drain/kube. An error means that there is
// no plan: the server has not answered, for example.
func (d *Drainer) ProvePlan(ctx context.Context, policy Policy, nodes ...string) (Result, error) {
	if d == nil || d.registry == nil {
		return Result{}, option.NotMade("drain.Drainer.ProvePlan", "drain.New")
	}
	judge, ok := d.o.Client.(strictClient).Client.(dryRunClient)
	if !ok {
		return Result{}, fmt.Errorf("proving a plan: Options.Client must have a method DryRunEvict, as that of "+
			"drain/kube.NewClient, and %T has none: %w", d.o.Client.(strictClient).Client, ErrOption)
	}
	s, err := d.dryRun(ctx, policy, nodes)
	if err != nil {
		return Result{}, fmt.Errorf("proving a plan: %w", err)
	}
	answers := map[types.UID]Answer{}
	for {
		r := planSnapshot(d, s, policy)
		asked := unjudgedPods(&r, answers)
		if len(asked) == 0 {
			noteUnproven(&r, answers)
			return r, nil
		}
		if err := judgeEvictions(ctx, judge, asked, answers); err != nil {
			return Result{}, fmt.Errorf("proving a plan: %w", err)
		}
		for i := range s.Nodes {
			s.Nodes[i].Attempts = refusedOf(s.Nodes[i].Pods, answers)
		}
	}
}

// A dryRunClient is a [Client] that can ask the server about an eviction without one.
type dryRunClient interface {
	DryRunEvict(ctx context.Context, pod PodRef) error
}

// dryRunWorkers is how many dry runs are under way at once.
const dryRunWorkers = 8

// unjudgedPods are the pods that a plan evicts now, and that the server has not been asked about.
func unjudgedPods(r *Result, answers map[types.UID]Answer) []*PodPlan {
	var asked []*PodPlan
	for i := range r.Nodes {
		for j := range r.Nodes[i].Pods {
			pod := &r.Nodes[i].Pods[j]
			if _, known := answers[pod.UID]; !known && pod.Action == Evict && pod.Step != StepOutOfService {
				asked = append(asked, pod)
			}
		}
	}
	return asked
}

// judgeEvictions adds the server's answers. One that the server never gave is an error.
func judgeEvictions(ctx context.Context, judge dryRunClient, pods []*PodPlan, answers map[types.UID]Answer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	workers := make(chan struct{}, dryRunWorkers)
	for _, pod := range pods {
		workers <- struct{}{}
		wg.Go(func() {
			defer func() { <-workers }()
			if ctx.Err() != nil {
				return
			}
			err := judge.DryRunEvict(ctx, pod.PodRef)
			answer := Classify(err)
			if answer.judged = true; answer.Verdict == verdictMultipleBudgets && len(pod.Budgets) < 2 {
				answer.Verdict = verdictAdmissionDenied // by a webhook, with the code of that answer
			}
			if err != nil && answer.Code == 0 {
				cancel(fmt.Errorf("asking the API server whether pod %s may leave: %w", pod.PodRef, err))
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answers[pod.UID] = answer
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// withoutDryRun is in the API server's refusal of a dry run that it would have to send to a webhook with side effects.
const withoutDryRun = "does not support dry run"

// isUnproven reports whether an answer says nothing about the eviction: that of a webhook which cannot be asked without
// effect, or to a caller who may look and not evict.
func isUnproven(a Answer) bool {
	return a.Verdict == verdictForbidden || strings.Contains(a.Message, withoutDryRun)
}

// refusedOf are the answers that hold pods back.
func refusedOf(pods []*corev1.Pod, answers map[types.UID]Answer) map[types.UID]Answer {
	refused := map[types.UID]Answer{}
	for _, pod := range pods {
		a, ok := answers[pod.UID]
		if ok && a.Verdict != verdictAccepted && !isUnproven(a) {
			refused[pod.UID] = a
		}
	}
	return refused
}

// noteUnproven says of the pods that leave which of them the server could not judge.
func noteUnproven(r *Result, answers map[types.UID]Answer) {
	for i := range r.Nodes {
		for j := range r.Nodes[i].Pods {
			pod := &r.Nodes[i].Pods[j]
			if a := answers[pod.UID]; pod.Action == Evict && isUnproven(a) {
				pod.Message = "not proven: " + a.Message
			}
		}
	}
}

// Preflight says what would stop a drain of these nodes under the policy before its first write, or put it off. It
// reads what [Drainer.Plan] reads, with the same errors.
func (d *Drainer) Preflight(ctx context.Context, policy Policy, nodes ...string) ([]Finding, error) {
	if d == nil || d.registry == nil {
		return nil, option.NotMade("drain.Drainer.Preflight", "drain.New")
	}
	s, err := d.dryRun(ctx, policy, nodes)
	if err != nil {
		return nil, fmt.Errorf("checking what would stop a drain: %w", err)
	}
	return Preflight(s, policy, d.o.Now()), nil
}

// dryRun is the snapshot of nodes as a drain that has not begun sees them.
func (d *Drainer) dryRun(ctx context.Context, policy Policy, nodes []string) (Snapshot, error) {
	if err := policy.Validate(); err != nil {
		return Snapshot{}, err
	}
	if err := d.checkCache(); err != nil {
		return Snapshot{}, err
	}
	if err := d.compareWithServer(ctx, nodes); err != nil {
		return Snapshot{}, err
	}
	views := make([]NodeView, 0, len(nodes))
	for i, name := range nodes {
		node := d.o.Cache.Node(name)
		if node == nil {
			return Snapshot{}, d.nodeMissing(ctx, name)
		}
		if slices.Contains(nodes[:i], name) {
			return Snapshot{}, fmt.Errorf("node %q is named twice", name)
		}
		v := NodeView{Node: node, Pods: d.o.Cache.Pods(name)}
		if err := findPodResponders(ctx, d, policy, &v); err != nil {
			return Snapshot{}, err
		}
		views = append(views, v)
	}
	return d.snapshotOf(policy, views...)
}

// compareWithServer returns an error for the first of the nodes with a pod that the cache does not show.
func (d *Drainer) compareWithServer(ctx context.Context, nodes []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	workers := make(chan struct{}, setWorkers)
	for _, name := range nodes {
		if d.o.Cache.Node(name) == nil {
			continue
		}
		workers <- struct{}{}
		wg.Go(func() {
			defer func() { <-workers }()
			if err := d.comparePods(ctx, name); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// comparePods lists the pods of a node and waits a moment for the cache to show them.
func (d *Drainer) comparePods(ctx context.Context, name string) error {
	live, err := d.o.Client.ListPods(ctx, name)
	if err != nil {
		return fmt.Errorf("comparing the cache with the server: %w", err)
	}
	ticker := time.NewTicker(catchUpInterval)
	defer ticker.Stop()
	end := time.NewTimer(catchUpTime)
	defer end.Stop()
	for {
		missing := missingPods(live, d.o.Cache.Pods(name))
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-end.C:
			return confirmMissing(ctx, d.o.Client, name, missing)
		case <-ticker.C:
		}
	}
}

// confirmMissing asks again: a pod that has gone meanwhile does not count.
func confirmMissing(ctx context.Context, client Client, name string, missing map[types.UID]PodRef) error {
	live, err := client.ListPods(ctx, name)
	if err != nil {
		return fmt.Errorf("comparing the cache with the server: %w", err)
	}
	shown := len(live)
	var first *PodRef
	for _, pod := range live {
		if ref, ok := missing[pod.UID]; ok {
			shown--
			if first == nil || ref.String() < first.String() {
				first = &ref
			}
		}
	}
	if first == nil {
		return nil
	}
	return &CacheError{Err: fmt.Errorf("it shows %d of the %d pods of node %q, not %q: %w",
		shown, len(live), name, *first, errSelectsTooLittle)}
}

// missingPods are those of live that the cache does not show.
func missingPods(live, cached []*corev1.Pod) map[types.UID]PodRef {
	missing := make(map[types.UID]PodRef, len(live))
	for _, pod := range live {
		missing[pod.UID] = refOf(pod)
	}
	for _, pod := range cached {
		delete(missing, pod.UID)
	}
	return missing
}
