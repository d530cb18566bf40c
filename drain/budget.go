// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// maxDisruptedPods is how many evictions that the disruption controller has not confirmed the server keeps for a budget: it refuses
// while there are more.
const maxDisruptedPods = 2000

// A planBudget is a budget and what a plan has taken from it.
type planBudget struct {
	pdb      *policyv1.PodDisruptionBudget
	selector labels.Selector // nil where labels say it all
	names    []string        // its name, for the pods that have only this one
	spent    int
	given    int
	expected int32     // pods, or as many as there were before a dip
	dipEnd   time.Time // zero for none
	pods     int       // have to leave under it
	guarded  int       // those among them for which the server asks it
	podsIn   func(namespace string) []*corev1.Pod
	unready  *string // what [planBudget.unreadyPods] has found; nil before
}

// planBudgets holds the budgets of the namespaces that have pods on the nodes. A cluster has thousands, of which a node meets a few: the
// others are only looked at.
type planBudgets struct {
	now     time.Time
	spent   map[types.NamespacedName]int
	dips    map[types.NamespacedName]Dip
	podsIn  func(namespace string) []*corev1.Pod
	entries []budgetEntry
	first   map[string]int // by namespace, an index into entries
}

// A budgetEntry is a budget in the list of its namespace.
type budgetEntry struct {
	pdb   *policyv1.PodDisruptionBudget
	state *planBudget // nil until it matters
	next  int         // an index into entries, or negative
}

func indexBudgets(s *Snapshot, now time.Time) planBudgets {
	ix := planBudgets{
		now: now, spent: s.Spent, dips: s.Dips, podsIn: s.PodsIn,
		first: make(map[string]int), entries: make([]budgetEntry, 0, len(s.Budgets)),
	}
	for i := range s.Nodes {
		for _, pod := range s.Nodes[i].Pods {
			ix.first[pod.Namespace] = -1
		}
	}
	for _, pdb := range s.Budgets {
		if next, ok := ix.first[pdb.Namespace]; ok {
			ix.first[pdb.Namespace] = len(ix.entries)
			ix.entries = append(ix.entries, budgetEntry{pdb: pdb, next: next})
		}
	}
	return ix
}

// matching returns the budget of an entry if it is for a pod with these labels, and nil otherwise. In policy/v1 an empty selector is
// for every pod, none at all for no pod, and one that cannot be read for no pod either.
func (ix *planBudgets) matching(e *budgetEntry, pod map[string]string) *planBudget {
	want := e.pdb.Spec.Selector
	if want == nil {
		return nil
	}
	if len(want.MatchExpressions) > 0 {
		if e.state == nil {
			e.state = ix.begin(e.pdb)
			e.state.selector = labels.Nothing()
			if s, err := metav1.LabelSelectorAsSelector(want); err == nil {
				e.state.selector = s
			}
		}
		if !e.state.selector.Matches(labels.Set(pod)) {
			return nil
		}
		return e.state
	}
	for key, value := range want.MatchLabels {
		if got, ok := pod[key]; !ok || got != value {
			return nil
		}
	}
	if e.state == nil {
		e.state = ix.begin(e.pdb)
	}
	return e.state
}

func (ix *planBudgets) begin(pdb *policyv1.PodDisruptionBudget) *planBudget {
	key := types.NamespacedName{Namespace: pdb.Namespace, Name: pdb.Name}
	b := &planBudget{
		pdb: pdb, names: []string{pdb.Name}, spent: ix.spent[key], expected: pdb.Status.ExpectedPods, podsIn: ix.podsIn,
	}
	if dip := ix.dips[key]; dip.Pods > b.expected && ix.now.Before(dip.Until) {
		b.expected, b.dipEnd = dip.Pods, dip.Until
	}
	return b
}

// guard finds the budgets of a pod and whether the server will ask one.
func (n *nodePass) guard(w *podWork) {
	next, ok := n.budgets.first[w.Namespace]
	for ok && next >= 0 {
		e := &n.budgets.entries[next]
		next = e.next
		b := n.budgets.matching(e, w.pod.Labels)
		if b == nil {
			continue
		}
		if w.budget == nil {
			w.budget, w.Budgets = b, b.names
		} else {
			w.Budgets, w.crowded = append(w.Budgets[:len(w.Budgets):len(w.Budgets)], b.pdb.Name), true
		}
		if w.pod.DeletionTimestamp == nil {
			b.pods++
		}
	}
	if w.crowded {
		slices.Sort(w.Budgets)
	}
	asked := w.budget != nil && !bypassesBudgets(w.pod)
	w.crowded = w.crowded && asked
	w.Guarded = asked && !w.crowded && (podReady(w.pod) || !w.budget.letsUnreadyGo())
	if w.Guarded {
		w.budget.guarded++
		n.wake(w.budget.dipEnd)
	}
}

// bypassesBudgets reports whether the server deletes the pod without a look at budgets.
func bypassesBudgets(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || podFinished(pod) || pod.Status.Phase == corev1.PodPending
}

// letsUnreadyGo reports whether a pod that is not ready leaves without spending. The server does not ask here whether the status is current.
func (b *planBudget) letsUnreadyGo() bool {
	policy, st := b.pdb.Spec.UnhealthyPodEvictionPolicy, &b.pdb.Status
	return policy != nil && *policy == policyv1.AlwaysAllow || st.DesiredHealthy > 0 && st.CurrentHealthy >= st.DesiredHealthy
}

func (b *planBudget) stale() bool { return b.pdb.Status.ObservedGeneration < b.pdb.Generation }

// allowed is what the budget allows now, less what is spent.
func (b *planBudget) allowed() int {
	if b.stale() {
		return 0
	}
	room := maxDisruptedPods + 1 - len(b.pdb.Status.DisruptedPods)
	return max(0, min(int(b.pdb.Status.DisruptionsAllowed), room)-b.spent)
}

// never reports whether the budget allows none even with every pod ready. A percent of maxUnavailable above zero is rounded up to at
// least one pod, and a budget that asks for nothing has an expected number of 0, with which the controller allows none.
func (b *planBudget) never() bool {
	spec, st := &b.pdb.Spec, &b.pdb.Status
	switch {
	case spec.MaxUnavailable == nil && spec.MinAvailable == nil:
		return true
	case spec.MaxUnavailable != nil && percentOrCount(spec.MaxUnavailable) == 0:
		return true
	case spec.MinAvailable != nil && spec.MinAvailable.Type == intstr.String && percentOrCount(spec.MinAvailable) >= 100:
		return true
	}
	return !b.stale() && b.expected > 0 && st.DesiredHealthy >= b.expected
}

// neverNow reports whether the budget allows none, and never will. One that never does by its spec may still allow some
// for a while, when there are more pods than its owner wants.
func (b *planBudget) neverNow() bool { return b.pdb.Status.DisruptionsAllowed <= 0 && b.never() }

// percentOrCount gives the number, with or without a percent sign, and -1 for what is neither.
func percentOrCount(v *intstr.IntOrString) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(v, 100, true)
	if err != nil {
		return -1
	}
	return max(n, 0)
}

// budgetObstacle is what no waiting changes.
func (n *nodePass) budgetObstacle(w *podWork) (Reason, string) {
	if w.crowded {
		return reasonMultipleBudgets, fmt.Sprintf("the server refuses a pod under more than one budget, it has %d: %q", len(w.Budgets), w.Budgets)
	}
	if w.Guarded && w.budget.neverNow() {
		_, reason, message := w.budget.refusal(podReady(w.pod))
		return reason, message
	}
	return reasonNone, ""
}

// spend takes one from the pod's budget, or says why there is none.
func (n *nodePass) spend(w *podWork) {
	if b := w.budget; b.given < b.allowed() {
		b.given++
		n.evict(w)
		return
	}
	w.decide(w.budget.refusal(podReady(w.pod)))
	// The server is asked all the same before a pod is deleted, and where no change of the budget is expected.
	_, asked := n.view.Asked[w.UID]
	stuck, known := n.s.Stuck[types.NamespacedName{Namespace: w.Namespace, Name: w.budget.pdb.Name}]
	known = known && w.budget.given == 0 && w.budget.spent == 0
	if known {
		n.wake(stuck)
	}
	if w.urgent && !asked || known && !n.now.Before(stuck) {
		w.askAnyway(n.grace(w.pod, nil))
	}
}

// refusal says why the budget does not let a pod go now.
func (b *planBudget) refusal(ready bool) (Action, Reason, string) {
	action, reason, message := Wait, BudgetExhausted, b.describe()
	switch {
	case b.never():
		action, reason = Block, BudgetNeverAllows
		message += "; it allows none even with every pod healthy"
	case b.stale():
		reason = BudgetStale
		message = fmt.Sprintf("budget %q: its status is for generation %d, its spec is of generation %d%s",
			b.pdb.Name, b.pdb.Status.ObservedGeneration, b.pdb.Generation, b.syncFailure())
	}
	if !ready {
		reason = reasonUnhealthyProtected
		message = "it is not ready, and " + message + `; unhealthyPodEvictionPolicy "AlwaysAllow" would let it go`
	}
	return action, reason, message
}

// describe tells the budget in numbers.
func (b *planBudget) describe() string {
	st := &b.pdb.Status
	if len(st.DisruptedPods) > maxDisruptedPods {
		return fmt.Sprintf("budget %q has %d evictions that its controller has not confirmed, the server goes no further above %d", b.pdb.Name, len(st.DisruptedPods), maxDisruptedPods)
	}
	s := "s"
	if st.DisruptionsAllowed == 1 {
		s = ""
	}
	message := fmt.Sprintf("budget %q allows %d disruption%s: %d of %d pods healthy, %d needed", b.pdb.Name, st.DisruptionsAllowed, s, st.CurrentHealthy, st.ExpectedPods, st.DesiredHealthy)
	if st.DisruptionsAllowed > 0 {
		message += fmt.Sprintf("; %d taken by evictions under way, %d by other pods of this drain", b.spent, b.given)
	}
	return message + b.unreadyPods() + b.syncFailure()
}

const (
	// namedUnready is how many of a budget's pods that are not ready a message names.
	namedUnready = 3
	// maxPodCause bounds what a message says of one of them, in bytes.
	maxPodCause = 160
)

// unreadyPods names those of the budget's pods that are not ready, and says why they are not, or is empty.
func (b *planBudget) unreadyPods() string {
	if b.unready != nil {
		return *b.unready
	}
	message := ""
	b.unready = &message
	selector, err := metav1.LabelSelectorAsSelector(b.pdb.Spec.Selector)
	if b.podsIn == nil || err != nil || b.pdb.Status.CurrentHealthy >= b.pdb.Status.ExpectedPods {
		return message
	}
	var unready []*corev1.Pod
	for _, pod := range b.podsIn(b.pdb.Namespace) {
		if !podFinished(pod) && (!podReady(pod) || pod.DeletionTimestamp != nil) && selector.Matches(labels.Set(pod.Labels)) {
			unready = append(unready, pod)
		}
	}
	slices.SortFunc(unready, func(x, y *corev1.Pod) int { return cmp.Compare(x.Name, y.Name) })
	for i, pod := range unready {
		if i == namedUnready {
			message += fmt.Sprintf(", and %d more", len(unready)-i)
			break
		}
		message += fmt.Sprintf(", %s (%s)", pod.Name, notReadyCause(pod))
	}
	if message != "" {
		message = "; not ready: " + message[len(", "):]
	}
	return message
}

// notReadyCause says why a pod is not ready, as far as its status tells.
func notReadyCause(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "Terminating"
	}
	if pod.Spec.NodeName == "" {
		for i := range pod.Status.Conditions {
			c := &pod.Status.Conditions[i]
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return "Pending, " + cutText(cmp.Or(c.Message, c.Reason), maxPodCause)
			}
		}
		return "Pending, no Node yet"
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if w := statuses[i].State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" {
				return fmt.Sprintf("container %s: %s", statuses[i].Name, w.Reason)
			}
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; !c.Ready {
			return fmt.Sprintf("container %s is not ready, on node %s", c.Name, pod.Spec.NodeName)
		}
	}
	return fmt.Sprintf("%s on node %s", cmp.Or(pod.Status.Phase, corev1.PodPending), pod.Spec.NodeName)
}

// cutText shortens a text to a number of bytes.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// syncFailure says why the disruption controller cannot compute the budget's status, or is empty.
func (b *planBudget) syncFailure() string {
	c := meta.FindStatusCondition(b.pdb.Status.Conditions, policyv1.DisruptionAllowedCondition)
	if c == nil || c.Reason != policyv1.SyncFailedReason {
		return ""
	}
	return "; its controller failed: " + bounded(c.Message)
}
