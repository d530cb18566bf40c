// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/doctor"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/internal/golden"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

func now() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }

// well is a cluster in which nothing is wrong: a rollout over two nodes that has not begun.
func well(wanted []*unstructured.Unstructured) *doctor.Seen {
	s := &doctor.Seen{Account: "system:serviceaccount:belay-system:belay-controller", Rights: doctor.Needed("belay-system"), Missing: map[string]error{}}
	for _, w := range wanted {
		is := w.DeepCopy()
		is.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
		s.CRDs = append(s.CRDs, doctor.CRD{Want: w, Is: is})
	}
	for i := range s.Rights {
		s.Rights[i].Allowed = true
	}
	s.Leases = []doctor.Lease{{Domain: "default", Namespace: "belay-system", Name: "belay-rollout-default", Holder: "belay-controller_1", Renewed: true}}
	s.Seen = view.Seen{
		Now:       now(),
		Revisions: []v1alpha1.Revision{{ObjectMeta: metav1.ObjectMeta{Name: "v2"}, Spec: v1alpha1.RevisionSpec{Digest: v1alpha1.OpaqueDigest("v2"), Opaque: "v2"}}},
		Rollouts: []v1alpha1.Rollout{{ObjectMeta: metav1.ObjectMeta{Name: "fleet", UID: "r-1"}, Spec: v1alpha1.RolloutSpec{
			Domain: "default", Selector: &metav1.LabelSelector{}, Revision: v1alpha1.PinnedRevision{Name: "v2", Digest: v1alpha1.OpaqueDigest("v2")},
		}}},
		Ledgers: []v1alpha1.DisruptionLedger{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}},
		Pods:    []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-0", Labels: map[string]string{"app": "cart"}}}},
		Budgets: []policyv1.PodDisruptionBudget{budget("cart", 1, 3)},
	}
	for _, name := range []string{"a", "b"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.UID = "u-" + n.UID
		s.Nodes = append(s.Nodes, n)
		s.Shadows = append(s.Shadows, v1alpha1.NodeShadow{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now().Add(-time.Hour))},
			Spec:       v1alpha1.NodeShadowSpec{NodeUID: string(n.UID), Domain: "default"}, Status: v1alpha1.NodeShadowStatus{Known: true},
		})
	}
	return s
}

// wanted are the definitions of this program. To read and compare all of them takes long with the race detector.
func wanted(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	all, err := doctor.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func budget(name string, healthy, of int32) policyv1.PodDisruptionBudget {
	return policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cart"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DesiredHealthy: healthy, ExpectedPods: of},
	}
}

// Where nothing is wrong nothing is found, and each check has said so.
func TestNothingIsWrong(t *testing.T) {
	r := doctor.Examine(well(wanted(t)))
	golden.Check(t, "well.txt", page.Findings(r))
	if r.Problems+r.Unknown > 0 || len(r.Findings) < 8 {
		t.Errorf("%d problems, %d unknown of %d findings; want none, and one finding of each check", r.Problems, r.Unknown, len(r.Findings))
	}
}

// Each thing that is wrong is found, by one check, with a remedy.
func TestEachTroubleIsFound(t *testing.T) {
	var all strings.Builder
	definitions := wanted(t)[:2]
	for i, c := range troubles() {
		if i == ofDefinitions {
			definitions = nil
		}
		s := well(definitions)
		c.harm(s)
		r := doctor.Examine(s)
		var found []doctor.Finding
		for _, f := range r.Findings {
			if f.Level != doctor.OK {
				found = append(found, f)
			}
		}
		if len(found) != 1 || found[0].Level != c.level || !strings.Contains(found[0].What, c.want) || found[0].Remedy == "" {
			t.Errorf("%s: found %+v, want one finding of level %s with %q and a remedy", c.name, found, c.level, c.want)
		}
		all.WriteString("# " + c.name + "\n" + page.Findings(doctor.Report{Findings: found, Problems: r.Problems, Unknown: r.Unknown}) + "\n")
	}
	golden.Check(t, "troubles.txt", all.String())
}

// ofDefinitions is how many of the troubles are of definitions: they come first.
const ofDefinitions = 4

type trouble struct {
	name  string
	harm  func(*doctor.Seen)
	level doctor.Level
	want  string
}

func troubles() []trouble {
	none := apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "y")
	denied := errors.New("forbidden")
	return append([]trouble{
		{"no definition", func(s *doctor.Seen) { s.CRDs[1].Is, s.CRDs[1].Err = nil, none }, doctor.Problem, "there is no "},
		{"definition unread", func(s *doctor.Seen) { s.CRDs[1].Is, s.CRDs[1].Err = nil, denied }, doctor.Unknown, "can't be read"},
		{"not served", func(s *doctor.Seen) { delete(s.CRDs[0].Is.Object, "status") }, doctor.Problem, "not served"},
		{"another version", func(s *doctor.Seen) {
			versions, _, _ := unstructured.NestedSlice(s.CRDs[0].Is.Object, "spec", "versions")
			versions[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
			_ = unstructured.SetNestedSlice(s.CRDs[0].Is.Object, versions, "spec", "versions")
		}, doctor.Problem, "the schema of v1alpha1 differs"},
		{"a right of the user", func(s *doctor.Seen) { s.Rights[0].Allowed = false }, doctor.Note, "you lack"},
		{"a right of the controller", func(s *doctor.Seen) { s.Rights[len(s.Rights)-1].Allowed = false }, doctor.Problem, "the controller lacks"},
		{"a right unknown", func(s *doctor.Seen) { s.Rights[len(s.Rights)-1].Err = denied }, doctor.Unknown, "1 rights can't be asked for"},
		{"no leader", func(s *doctor.Seen) { s.Leases[0].Err = none }, doctor.Problem, "there is no Lease belay-system/belay-rollout-default"},
		{"lease unread", func(s *doctor.Seen) { s.Leases[0].Err = denied }, doctor.Unknown, "can't be read"},
		{"nobody holds", func(s *doctor.Seen) { s.Leases[0].Holder = "" }, doctor.Problem, "has no holder"},
		{"dead leader", func(s *doctor.Seen) { s.Leases[0].Renewed, s.Leases[0].Watched = false, 15*time.Second }, doctor.Problem, "not renewed its Lease"},
		{"invalid", func(s *doctor.Seen) { s.Rollouts[0].Spec.Revision.Name = "v9" }, doctor.Problem, `spec.revision.name is "v9"`},
		{"unseen change", func(s *doctor.Seen) { s.Rollouts[0].Generation = 2 }, doctor.Problem, "has not looked at that yet"},
		{"stalled", func(s *doctor.Seen) {
			s.Rollouts[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: "True", Reason: "Frozen", Message: "too much has failed"}}
		}, doctor.Problem, "Frozen: too much has failed"},
	}, troublesOfNodes(denied)...)
}

func troublesOfNodes(denied error) []trouble {
	slot := v1alpha1.Slot{Node: "a", UID: "u-", Attempt: 1, Rollout: "r-1"}
	return []trouble{
		{"mute agent", func(s *doctor.Seen) { s.Shadows[0].Status.Known = false }, doctor.Problem, "never spoken, for 1 node: a"},
		{"no node", func(s *doctor.Seen) { s.Nodes = s.Nodes[1:] }, doctor.Problem, "a NodeShadow, and no Node, for 1 node: a"},
		{"earlier node", func(s *doctor.Seen) { s.Shadows[1].Spec.NodeUID = "u-before" }, doctor.Problem, "an earlier Node of that name, for 1 node: b"},
		{"silent agent", func(s *doctor.Seen) {
			s.Rollouts[0].Status.Progress = &v1alpha1.RolloutProgress{
				Nodes: "u-a node=a attempt=1 state=Granted since=2026-03-04T11:50:00Z admitted=2026-03-04T11:50:00Z\n",
			}
		}, doctor.Problem, "does not answer what was granted, for 1 node: a"},
		{"no ledger", func(s *doctor.Seen) { s.Ledgers = nil }, doctor.Problem, "domain default has no DisruptionLedger"},
		{"closed", func(s *doctor.Seen) {
			s.Ledgers[0].Spec.Closures = []v1alpha1.Closure{{Request: "reborn", Reason: "the ledger was lost"}}
		}, doctor.Problem, "closed as a whole by reborn"},
		{"revisions unread", func(s *doctor.Seen) { s.Missing["Revisions"] = denied }, doctor.Unknown, "Revisions can't be listed"},
		{"broken node", func(s *doctor.Seen) {
			broken := slot
			broken.State = "Broken"
			s.Ledgers[0].Spec.Slots = []v1alpha1.Slot{broken}
		}, doctor.Problem, "node a in domain default is Broken"},
		{"slot of a node that is gone", func(s *doctor.Seen) {
			gone := slot
			gone.Node = "c"
			s.Ledgers[0].Spec.Slots = []v1alpha1.Slot{gone}
		}, doctor.Problem, "has a slot, and is gone"},
		{"stuck drain", func(s *doctor.Seen) {
			s.Ledgers[0].Spec.Slots = []v1alpha1.Slot{slot}
			s.Rollouts[0].Status.Nodes = []v1alpha1.NodeReason{{Node: "a", Reason: string(rollout.ReasonBlocked), Message: "budget cart allows none"}}
		}, doctor.Problem, "budget cart allows none"},
		{"budget of zero", func(s *doctor.Seen) { s.Budgets[0].Status.DesiredHealthy = 3 }, doctor.Problem, "wants 3 of 3 pods healthy"},
		{"budget not computed", func(s *doctor.Seen) { s.Budgets[0].Generation = 1 }, doctor.Problem, "has not been computed"},
		{"budget that can't be", func(s *doctor.Seen) {
			s.Budgets[0].Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Reason: policyv1.SyncFailedReason, Message: "no scale"}}
		}, doctor.Problem, "no scale"},
		{"two budgets", func(s *doctor.Seen) { s.Budgets = append(s.Budgets, budget("other", 1, 3)) }, doctor.Problem, "more than one budget"},
	}
}

// The manifests give people what the command uses, and no more.
func TestManifestHasTheRights(t *testing.T) {
	text, err := os.ReadFile("../../../manifests/kubectl-belay/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]map[string]bool{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		given[role.Kind+"/"+role.Name] = flat(role.Rules)
	}
	leases := []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get"}}}
	want := map[string]map[string]bool{
		"ClusterRole/belay-viewer": flat(doctor.ViewerRules()), "Role/belay-viewer": flat(leases), "ClusterRole/belay-operator": flat(doctor.OperatorRules()),
	}
	if !reflect.DeepEqual(given, want) {
		t.Errorf("the manifest gives %v, want %v", given, want)
	}
}

func flat(rules []rbacv1.PolicyRule) map[string]bool {
	all := map[string]bool{}
	for _, r := range rules {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				all[verb+" "+r.APIGroups[0]+"/"+resource] = true
			}
		}
	}
	return all
}
