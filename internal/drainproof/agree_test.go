// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

const (
	agreeAtOnce   = 16 // an eviction is mostly a wait for the server's watch cache
	agreeFailures = 3  // as many are enough to see what is wrong
)

// agreeClusters is how many clusters are compared.
func agreeClusters() int {
	if whole() {
		return 200
	}
	return 50
}

// agreePolicy takes every protection away that is not the server's, so that nothing but budgets and the pods' state decide.
func agreePolicy() drain.Policy {
	return drain.Policy{LocalData: drain.EvictPods, Unmanaged: drain.EvictPods, DeleteFinished: true, IgnorePodLabels: true}
}

// TestPlanAgreesWithTheServer compares, in random clusters, the pods that Plan lets go at once with those that the server admits. The
// server is asked pod by pod, by dry run, in the order that Plan documents. A dry run takes nothing from a budget; so whoever was
// admitted is then evicted in earnest, and the server itself counts what is left for the next.
//
// No controller runs, so that the status of a budget is what the test and the evictions made of it.
func TestPlanAgreesWithTheServer(t *testing.T) {
	t.Parallel()
	a := newAgreement(t)
	seed := seedFor(t)
	var namespaces []string
	for range 2 * agreeClusters() {
		namespaces = append(namespaces, bare.Env(t).Namespace(t))
	}
	var wg sync.WaitGroup
	places := make(chan struct{}, agreeAtOnce)
	for i := range agreeClusters() {
		places <- struct{}{}
		if a.failures() >= agreeFailures {
			break
		}
		wg.Go(func() {
			defer func() { <-places }()
			c := &agreeCluster{agreement: a, rng: rand.New(rand.NewPCG(seed, uint64(i))), namespaces: namespaces[2*i : 2*i+2]}
			if err := c.compare(t.Context()); err != nil {
				a.failed(t, fmt.Errorf("%s=%d, cluster %d: %w", seedEnv, seed, i, err))
			}
		})
	}
	wg.Wait()
	a.covered(t)
}

// An agreement is what all clusters of one run share.
type agreement struct {
	api    kubernetes.Interface
	client kube.Client

	mu     sync.Mutex
	count  int
	reason map[drain.Reason]int // of Plan
	answer map[drain.Verdict]int
	bypass int // pods under a budget that passed it
}

func newAgreement(t *testing.T) *agreement {
	config := bare.Env(t).Config()
	client, err := kube.NewClientForConfig(config, nil, kube.ClientOptions{QPS: 1000, Burst: 1000})
	must(t, err)
	return &agreement{api: clientset(t, config), client: client, reason: map[drain.Reason]int{}, answer: map[drain.Verdict]int{}}
}

func (a *agreement) failures() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count
}

func (a *agreement) failed(t *testing.T, err error) {
	t.Error(err)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
}

// covered fails where the clusters were not as different as they should be: then the agreement shows little.
func (a *agreement) covered(t *testing.T) {
	t.Logf("Plan said %v; the server said %v; %d pods passed a budget", a.reason, a.answer, a.bypass)
	if a.failures() > 0 {
		return
	}
	for _, r := range []drain.Reason{"", drain.Terminating, drain.BudgetExhausted, drain.BudgetNeverAllows, drain.BudgetStale,
		"MultipleBudgets", "UnhealthyProtected"} {
		if a.reason[r] == 0 {
			t.Errorf("no pod of %d clusters has reason %q, want some: %v", agreeClusters(), r, a.reason)
		}
	}
	if a.bypass == 0 {
		t.Errorf("no pod passed a budget, want some")
	}
}

// compare makes the cluster, plans it, and asks the server.
func (c *agreeCluster) compare(ctx context.Context) error {
	if err := c.build(ctx); err != nil {
		return fmt.Errorf("making it: %w", err)
	}
	snapshot, err := c.snapshot(ctx)
	if err != nil {
		return err
	}
	plans := map[drain.PodRef]drain.PodPlan{}
	for _, n := range drain.Plan(snapshot, agreePolicy(), time.Now()).Nodes {
		for _, p := range n.Pods {
			plans[p.PodRef] = p
		}
	}
	for _, pod := range inPlanOrder(snapshot.Nodes) {
		plan, ok := plans[refOf(pod)]
		if !ok {
			return fmt.Errorf("pod %s is not in the plan", refOf(pod))
		}
		if err := c.agree(ctx, pod, plan); err != nil {
			return fmt.Errorf("pod %s (%s): Plan says %s %s %q: %w", plan.PodRef, describePod(pod), plan.Action, plan.Reason, plan.Message, err)
		}
	}
	return nil
}

// agree asks the server about one pod. One that is ending already is no question: the server would admit it again, a drain does not ask.
func (c *agreeCluster) agree(ctx context.Context, pod *corev1.Pod, plan drain.PodPlan) error {
	if pod.DeletionTimestamp != nil {
		if plan.Action != drain.Wait || plan.Reason != drain.Terminating {
			return fmt.Errorf("want %s %s", drain.Wait, drain.Terminating)
		}
		c.saw(plan, "")
		return nil
	}
	answer := c.ask(ctx, plan.PodRef, c.client.DryRunEvict)
	c.saw(plan, answer.Verdict)
	if admitted := answer.Verdict == "Accepted"; admitted != (plan.Action == drain.Evict) {
		return fmt.Errorf("the server says %s (%d) %q", answer.Verdict, answer.Code, answer.Message)
	}
	if answer.Verdict != "Accepted" {
		if !slices.Contains(reasonsFor(answer.Verdict), plan.Reason) {
			return fmt.Errorf("the server says %s %q, want one of %v", answer.Verdict, answer.Message, reasonsFor(answer.Verdict))
		}
		return nil
	}
	evict := func(ctx context.Context, ref drain.PodRef) error { return c.client.Evict(ctx, ref, nil) }
	if answer := c.ask(ctx, plan.PodRef, evict); answer.Verdict != "Accepted" {
		return fmt.Errorf("the server admits it in a dry run, and then says %s (%d) %q", answer.Verdict, answer.Code, answer.Message)
	}
	return nil
}

// ask repeats a request that the server did not answer for a reason that passes by itself.
func (c *agreeCluster) ask(ctx context.Context, ref drain.PodRef, request func(context.Context, drain.PodRef) error) drain.Answer {
	var answer drain.Answer
	for range 5 {
		answer = drain.Classify(request(ctx, ref))
		switch answer.Verdict {
		case "BudgetContended", "Overloaded", "Unknown":
		default:
			return answer
		}
	}
	return answer
}

// reasonsFor are the words that Plan may have for an answer of the server: it knows more, for example that waiting is of no use.
func reasonsFor(v drain.Verdict) []drain.Reason {
	switch v {
	case "BudgetExhausted":
		return []drain.Reason{drain.BudgetExhausted, drain.BudgetNeverAllows, "UnhealthyProtected"}
	case "BudgetStale":
		return []drain.Reason{drain.BudgetStale, drain.BudgetNeverAllows, "UnhealthyProtected"}
	case "MultipleBudgets":
		return []drain.Reason{"MultipleBudgets"}
	}
	return nil
}

func (c *agreeCluster) saw(plan drain.PodPlan, v drain.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reason[plan.Reason]++
	c.answer[v]++
	if plan.Action == drain.Evict && len(plan.Budgets) > 0 && !plan.Guarded {
		c.bypass++
	}
}

// snapshot reads back what the server has.
func (c *agreeCluster) snapshot(ctx context.Context) (drain.Snapshot, error) {
	pods := map[string][]*corev1.Pod{}
	var s drain.Snapshot
	for _, ns := range c.namespaces {
		list, err := c.api.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return s, err
		}
		for i := range list.Items {
			pod := &list.Items[i]
			pods[pod.Spec.NodeName] = append(pods[pod.Spec.NodeName], pod)
		}
		budgets, err := c.api.PolicyV1().PodDisruptionBudgets(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return s, err
		}
		for i := range budgets.Items {
			s.Budgets = append(s.Budgets, &budgets.Items[i])
		}
	}
	for _, node := range slices.Sorted(maps.Keys(pods)) {
		s.Nodes = append(s.Nodes, drain.NodeView{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, Pods: pods[node]})
	}
	c.rng.Shuffle(len(s.Nodes), func(i, j int) { s.Nodes[i], s.Nodes[j] = s.Nodes[j], s.Nodes[i] })
	return s, nil
}

// inPlanOrder is the order that Snapshot and NodePlan promise: the node with the fewest pods left first, by namespace and name on each.
func inPlanOrder(nodes []drain.NodeView) []*corev1.Pod {
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b drain.NodeView) int { return cmp.Compare(len(a.Pods), len(b.Pods)) })
	var pods []*corev1.Pod
	for _, n := range nodes {
		pods = append(pods, slices.SortedFunc(slices.Values(n.Pods), func(a, b *corev1.Pod) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})...)
	}
	return pods
}

func refOf(pod *corev1.Pod) drain.PodRef {
	return drain.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

func describePod(pod *corev1.Pod) string {
	return fmt.Sprintf("phase %s, conditions %v, labels %v", pod.Status.Phase, pod.Status.Conditions, pod.Labels)
}
