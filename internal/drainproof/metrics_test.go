// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// gauges are what a program would show of a drain.
type gauges struct {
	mu      sync.Mutex
	phases  map[drain.Phase]int
	blocked map[string]map[drain.Reason]int
	oldest  map[string]time.Time
	answers map[int]int // by code
	wrong   []string
}

// count gives a Drainer metrics that fill the gauges.
func (g *gauges) count(o *drain.Options, _ *kube.Cache, _ kubernetes.Interface) error {
	g.phases, g.blocked, g.oldest, g.answers = map[drain.Phase]int{}, map[string]map[drain.Reason]int{}, map[string]time.Time{}, map[int]int{}
	o.Metrics = drain.Metrics{
		Phase: func(from, to drain.Phase) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.phases[from]--; g.phases[from] == 0 || from == "" {
				delete(g.phases, from)
			}
			g.phases[to]++
		},
		Blocked: func(node string, byReason map[drain.Reason]int, oldest time.Time) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.blocked[node], g.oldest[node] = byReason, oldest
		},
		Eviction: func(verdict drain.Verdict, code int, took time.Duration) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.answers[code]++; (verdict == "Accepted") != (code == 201) || took <= 0 {
				g.wrong = append(g.wrong, fmt.Sprintf("%s with code %d after %s", verdict, code, took))
			}
		},
	}
	return nil
}

// show waits until the gauges stand as they should, and returns since when the oldest pod of a node is blocked.
func (g *gauges) show(t *testing.T, rule, node string, phases map[drain.Phase]int, blocked map[drain.Reason]int) (oldest time.Time) {
	t.Helper()
	eventually(t, rule, func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if oldest = g.oldest[node]; !maps.Equal(g.phases, phases) || !maps.Equal(g.blocked[node], blocked) {
			return fmt.Errorf("got nodes by phase %v and blocked pods by reason %v, want %v and %v", g.phases, g.blocked[node], phases, blocked)
		}
		return nil
	})
	return oldest
}

// TestMetricsTellABlockedDrain drains one node that can be emptied, and one with a pod for each of three reasons to stay. R-DR-11
// Fails when the phase that a node leaves is not told, when waiting pods are not counted, when an answer is not told, and when each pass starts the age anew.
func TestMetricsTellABlockedDrain(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.mustNode(t, "a", workRole).Name, c.mustNode(t, "b", workRole).Name
	c.blockade(t, a)
	c.mustPod(t, "leaves-a", "plain", a)
	c.mustPod(t, "leaves-b", "plain", b)
	c.settled(t, 6)
	user := c.name + "-drainer"
	g := &gauges{}
	begun := time.Now()
	run := start(t, mustConnect(t, c.asDrainer(t, user), g.count), setOf(user, drain.Drain, a, b))

	reasons := map[drain.Reason]int{drain.BudgetNeverAllows: 1, drain.BudgetExhausted: 1, drain.AdmissionDenied: 1}
	oldest := g.show(t, "the block is told", a, map[drain.Phase]int{drain.Draining: 1, drain.Drained: 1}, reasons)
	if oldest.Before(begun) || time.Since(oldest) < 0 {
		t.Errorf("blocked since %s, want a time since %s", oldest, begun)
	}
	c.looksAgain(t, run, a)
	again := g.show(t, "the block is told", a, map[drain.Phase]int{drain.Draining: 1, drain.Drained: 1}, reasons)
	if first := run.last().Nodes[0].Blockers[0].Since; !again.Equal(oldest) || !first.Equal(oldest) {
		t.Errorf("blocked since %s, and %s later since %s, and the status says %s, want one time", oldest, time.Since(oldest), again, first)
	}

	must(t, c.api.PolicyV1().PodDisruptionBudgets(c.namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	must(t, c.api.CoreV1().Pods(c.namespace).Delete(t.Context(), "denied", metav1.DeleteOptions{}))
	_, err := run.wait(t)
	must(t, err)
	if oldest := g.show(t, "nothing is blocked any more", a, map[drain.Phase]int{drain.Drained: 2}, nil); !oldest.IsZero() {
		t.Errorf("the oldest block is of %s, want none", oldest)
	}
	g.agrees(t, user)
}

// agrees compares the answers that were told with those that the server has logged.
func (g *gauges) agrees(t *testing.T, user string) {
	t.Helper()
	logged := map[int]int{}
	all, _ := evictions(t, audited(t, user))
	for _, e := range all {
		logged[e.ResponseStatus.Code]++
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !maps.Equal(g.answers, logged) || logged[201] != 4 || logged[403] == 0 {
		t.Errorf("answers by code: got %v, the server has given %v; want 201 four times, and 403", g.answers, logged)
	}
	for _, w := range g.wrong {
		t.Error("an answer was told as ", w)
	}
}

// blockade puts three pods on a node that may not leave: by a budget that never allows, by one that allows none now, and by a policy.
func (c *cluster) blockade(t *testing.T, node string) {
	t.Helper()
	must(t, c.budget(t.Context(), "only", "only", 1))
	must(t, c.budget(t.Context(), "pair", "pair", 1))
	c.mustPod(t, "only", "only", node)
	c.mustPod(t, "pair-0", "pair", node)
	c.mustPod(t, "pair-1", "pair", c.mustNode(t, "spare", spareRole).Name, func(p *corev1.Pod) { p.Labels[unreadyLabel] = "yes" })
	denied := refOf(c.mustPod(t, "denied", "plain", node))
	must(t, c.healthy(t.Context(), "only", 1))
	must(t, c.healthy(t.Context(), "pair", 1))
	c.deny(t, `object.metadata.name != "denied"`)
	client, err := kube.NewClientForConfig(c.env.Config(), nil, kube.ClientOptions{})
	must(t, err)
	eventually(t, "the policy is in force", func() error {
		if client.DryRunEvict(t.Context(), denied) == nil {
			return fmt.Errorf("pod %q may be evicted", denied)
		}
		return nil
	})
}

// deny makes an admission policy for the evictions of the cluster's namespace.
func (c *cluster) deny(t *testing.T, unless string) {
	t.Helper()
	api := c.api.AdmissionregistrationV1()
	_, err := api.ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: c.name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: unless, Message: "not this one", Reason: ptr.To(metav1.StatusReasonForbidden)}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = api.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: c.name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: c.namespace}},
			},
		},
	}, metav1.CreateOptions{})
	must(t, err)
}
