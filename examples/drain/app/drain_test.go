// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/drain/internal/report"
)

// R-DR-01, R-DR-02, R-DR-08, R-DR-09: a node with an app under a budget is drained by evictions alone, stays cordoned with the mark, and is
// given back without a trace.
func TestNodeIsDrainedAndGivenBack(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.app(t, "web", 3)
	w.budget(t, "web", 2, 1)
	n2 := w.node(t, "2")

	p := w.drain(t, n1, "--settle=1s", "--holder=drain/jane")
	p.ends(t, exitDone)
	p.says(t, n1+": evicted "+w.namespace+"/web-", n1+": drained, 3 pods evicted in ", "To give back: drain release "+n1+" --holder=drain/jane")
	if left, moved := w.pods(t, n1), w.pods(t, n2); len(left) != 0 || len(moved) != 3 {
		t.Errorf("pods %q are on the drained node and %q on the other, want 0 and 3", left, moved)
	}
	w.heldBy(t, n1, "drain/jane")
	asked := w.requests(t, w.user)
	if asked["create pods/eviction"] < 3 || asked["delete pods"] != 0 || asked["patch nodes"] != 2 {
		t.Errorf("got the requests %v, want 3 evictions at least, no deletion, and 2 writes to the node: cordoned, drained", asked)
	}

	other := w.drain(t, "release", n1, "--holder=drain/joe")
	other.ends(t, exitDone)
	other.says(t, n1+": not held by drain/joe; --holder must be one of: drain/jane")
	w.heldBy(t, n1, "drain/jane")
	p = w.drain(t, "release", n1, "--holder=drain/jane")
	p.ends(t, exitDone)
	w.asFound(t, n1, false)
	again := w.drain(t, "release", n1, "--holder=drain/jane")
	again.ends(t, exitDone)
	again.says(t, n1+": nobody holds it")
}

// R-DR-03: a pod whose budget never allows it, and one that nobody would create again, are named with what is in their way; the others leave;
// after the time-out the node is still cordoned, and a program finds all that in the final status.
func TestBlockedPodsAreNamedAndHoldUpNobody(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.app(t, "db", 1)
	w.budget(t, "db", 1, 0)
	w.app(t, "web", 2)
	w.bare(t, "tool", n1)
	n2 := w.node(t, "2")

	p := w.drain(t, n1, "--timeout=8s", "--settle=0s", "--output=json", "--holder=drain/jane")
	p.until(t, "Nothing moves until somebody acts")
	p.ends(t, exitBlocked)
	var st drain.SetStatus
	if err := json.Unmarshal([]byte(p.out.String()), &st); err != nil {
		t.Fatalf("standard output is no status: %v\n%s", err, p)
	}
	reasons := map[drain.Reason]drain.Blocker{}
	for _, b := range st.Nodes[0].Blockers {
		reasons[b.Reason] = b
	}
	db, tool := reasons[drain.BudgetNeverAllows], reasons[drain.Unmanaged]
	if !strings.HasPrefix(db.Name, "db-") || !slices.Equal(db.Budgets, []string{"db"}) || db.Since.IsZero() || !strings.Contains(db.Message, "1 needed") {
		t.Errorf("got the blocker %+v, want the db with its budget, its numbers and since when", db)
	}
	if tool.Name != "tool" || st.Nodes[0].Outcome != drain.OutcomeBlocked || len(st.Nodes[0].Evicted) != 2 {
		t.Errorf("got the status %+v, want outcome Blocked, the tool blocked and 2 pods evicted", st.Nodes[0])
	}
	for _, want := range []string{"blocked " + w.namespace + "/db-", "BudgetNeverAllows (db)", "Unmanaged", n1 + ": evicted " + w.namespace + "/web-"} {
		if !strings.Contains(p.errs.String(), want) {
			t.Errorf("got no %q in the progress\n%s", want, p)
		}
	}
	if left, moved := w.pods(t, n1), w.pods(t, n2); len(left) != 2 || len(moved) != 2 {
		t.Errorf("pods %q are left and %q have moved, want 2 and 2", left, moved)
	}
	w.heldBy(t, n1, "drain/jane")
}

// --escalate announces the deletion of a pod that its budget keeps, and --force evicts one without a controller.
func TestWhatIsAllowedIsDone(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.app(t, "db", 1)
	w.budget(t, "db", 1, 0)
	w.bare(t, "tool", n1)
	_ = w.node(t, "2")

	p := w.drain(t, n1, "--force", "--escalate=delete=4s", "--settle=0s", "--release-after")
	p.ends(t, exitDone)
	p.says(t, "next: Delete at ", "deleted past its budget "+w.namespace+"/db-", "evicted "+w.namespace+"/tool")
	if left := w.pods(t, n1); len(left) != 0 {
		t.Errorf("pods %q are left, want none", left)
	}
	w.asFound(t, n1, false)
}

// --node-conditions tells a drain in the Node's conditions, and a release with it removes them.
func TestConditionsTellADrain(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.bare(t, "web", n1)
	told := func() (found string) {
		for _, c := range w.get(t, n1).Status.Conditions {
			if strings.Contains("DrainInProgress Drained MaintenancePlanned MaintenanceInProgress", string(c.Type)) {
				found += fmt.Sprintf("%s=%s ", c.Type, c.Status)
			}
		}
		return found
	}
	w.drain(t, n1, "--force", "--settle=0s", "--node-conditions").ends(t, exitDone)
	const want = "DrainInProgress=False Drained=True MaintenancePlanned=False MaintenanceInProgress=True "
	if got := told(); got != want {
		t.Errorf("drained: got %q, want %q", got, want)
	}
	w.drain(t, "release", n1, "--node-conditions").ends(t, exitDone)
	if got := told(); got != "" {
		t.Errorf("released: got %q, want no condition", got)
	}
}

// --honor keeps the pods that ask Karpenter not to disrupt them, says so, and moves the others.
func TestHonorKeepsWhatIsNotToBeDisrupted(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.bare(t, "job", n1)
	w.bare(t, "web", n1)
	w.annotate(t, "job", "karpenter.sh/do-not-disrupt", "true")

	p := w.drain(t, n1, "--honor=do-not-disrupt", "--force", "--timeout=8s", "--settle=0s")
	p.ends(t, exitBlocked)
	p.says(t, "evicted "+w.namespace+"/web", `rule "karpenter.sh/do-not-disrupt" keeps it`, "BlockedByRule")
	if left := w.pods(t, n1); len(left) != 1 || !strings.Contains(left[0], "job") {
		t.Errorf("pods %q are left, want the one that is not to be disrupted", left)
	}
	w.drain(t, "plan", n1, "--honor=safe-to-evict", "--force").ends(t, exitDone)
}

// R-DR-03: the plan is what the drain then does, and making it writes nothing.
func TestPlanIsWhatTheDrainDoes(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.app(t, "web", 4)
	w.app(t, "db", 1)
	w.budget(t, "db", 1, 0)
	w.bare(t, "tool", n1)
	n2 := w.node(t, "2")

	planner := "planner-of-" + w.namespace
	kubeconfig := "--kubeconfig=" + w.login(t, planner, "system:masters")
	p := start(t, n1, n2, "--dry-run", "--output=json", "--timeout=5s", kubeconfig)
	p.ends(t, exitBlocked)
	var plan report.Plan
	if err := json.Unmarshal([]byte(p.out.String()), &plan); err != nil {
		t.Fatalf("standard output is no plan: %v\n%s", err, p)
	}
	text := start(t, "plan", n1, n2, kubeconfig)
	text.ends(t, exitBlocked)
	text.says(t, "Node "+n1+": 6 pods to leave, 2 of them blocked", "Node "+n2+": 0 pods to leave", w.namespace+"/db  ", "never allows",
		"6 pods on 2 nodes: at least 1 round", "2 pods can't leave until somebody acts:")
	checkDryRuns(t, w.requests(t, planner))
	w.asFound(t, n1, false)

	p = w.drain(t, n1, "--timeout=6s", "--settle=0s", "--output=json")
	p.ends(t, exitBlocked)
	var st drain.SetStatus
	if err := json.Unmarshal([]byte(p.out.String()), &st); err != nil {
		t.Fatalf("standard output is no status: %v\n%s", err, p)
	}
	var evict, stay []types.UID
	for _, pod := range plan.Nodes[0].Pods {
		switch pod.Action {
		case drain.Evict:
			evict = append(evict, pod.UID)
		case drain.Block:
			stay = append(stay, pod.UID)
		default:
			t.Errorf("planned: %+v, want only evictions and blocks", pod)
		}
	}
	var evicted, stayed []types.UID
	for _, pod := range st.Nodes[0].Evicted {
		evicted = append(evicted, pod.UID)
	}
	for _, b := range st.Nodes[0].Blockers {
		stayed = append(stayed, b.UID)
	}
	for _, list := range [][]types.UID{evict, stay, evicted, stayed} {
		slices.Sort(list)
	}
	if len(evict) != 4 || !slices.Equal(evict, evicted) || !slices.Equal(stay, stayed) {
		t.Errorf("planned were evictions of %q and blocks of %q; evicted were %q and blocked %q", evict, stay, evicted, stayed)
	}
}

// checkDryRuns looks for requests that write among those of a dry run of the client and a plan.
func checkDryRuns(t *testing.T, asked map[string]int) {
	t.Helper()
	for request, count := range asked {
		verb, _, _ := strings.Cut(request, " ")
		if request == "create pods/eviction" && count == 4 {
			continue // one dry run for each pod that leaves, of the plan alone
		}
		if request == "get " && count <= 2 {
			continue // whether the server has the EvictionRequest API, once for each of the two commands
		}
		if verb != "list" && verb != "watch" {
			t.Errorf("got %d requests to %q of dry runs, want list, watch and 4 dry runs of evictions", count, request)
		}
	}
}

// A plan in which every pod can leave ends with 0, and says what a pod selector leaves alone.
func TestPlanWithoutTrouble(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.app(t, "web", 2)
	w.bare(t, "tool", n1)
	p := w.drain(t, "plan", n1, "--pod-selector=app=web")
	p.ends(t, exitDone)
	p.says(t, "2 pods to leave, 0 of them blocked; 1 pod to stay", "Skip", "SkippedByRule", "Every pod can leave.")
}

// What was seen 6: a plan names the pods whose replacement no node can take, and why; that stops nothing unless asked.
func TestPlanSaysWhereReplacementsFitNowhere(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	other := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, poolLabel)
	if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), w.node(t, "other"), types.MergePatchType, []byte(other),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.app(t, "web", 2)
	p := w.drain(t, "plan", n1)
	p.ends(t, exitDone)
	p.says(t, "No node can take the replacement of 2 pods, by an estimate; the drain doesn't wait for that:",
		w.namespace+"/web-", "NowhereToGo: no node can take its replacement: 0/", "1 node(s) are being drained",
		"node(s) didn't match Pod's node affinity/selector", "Every pod can leave.")
	w.drain(t, "plan", n1, "--require-fit").ends(t, exitBlocked)
	_ = w.node(t, "2")
	free := w.drain(t, "plan", n1, "--require-fit")
	free.ends(t, exitDone)
	if strings.Contains(free.out.String(), "No node can take") {
		t.Errorf("there is another node, and it says\n%s", free)
	}
}

// A hold renews the Lease for its time, and gives the node back where that is asked for.
func TestHoldRenewsTheLease(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	leases := w.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	before := metav1.NewMicroTime(time.Now().Add(-time.Minute))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n1}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &n1, RenewTime: &before}}
	if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := w.drain(t, "hold", n1, "--for=3s", "--release-after")
	p.until(t, n1+": holding")
	w.heldBy(t, n1, defaultHolder(t))
	p.ends(t, exitDone)
	lease, err := leases.Get(t.Context(), n1, metav1.GetOptions{})
	if err != nil || !lease.Spec.RenewTime.After(before.Time) {
		t.Errorf("the Lease is %+v (%v), want it renewed since %s", lease.Spec, err, before)
	}
	w.asFound(t, n1, false)
	resume := w.drain(t, "resume")
	resume.ends(t, exitDone)
	resume.says(t, "Nothing stops the drains of "+defaultHolder(t))
}

// defaultHolder is the holder of a command line that names none.
func defaultHolder(t *testing.T) string {
	t.Helper()
	f := newCommand(nil, nil).Flags().Lookup("holder")
	if f == nil || f.DefValue == "" {
		t.Fatal("there is no default for --holder")
	}
	return f.DefValue
}

// A Node that is deleted in the middle is done: nothing is left to drain, and that is said.
func TestNodeThatGoesAwayIsDone(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.bare(t, "tool", n1)
	p := w.drain(t, n1)
	p.until(t, "Nothing moves until somebody acts")
	if err := w.client.CoreV1().Nodes().Delete(t.Context(), n1, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.ends(t, exitDone)
	p.says(t, "NodeNotFound", "the Node was deleted")
	if strings.Contains(p.out.String(), "To give back") {
		t.Errorf("it says how to give back a Node that is gone:\n%s", p)
	}
}
