// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

func pool(replicas int) machine.Deployment {
	return machine.Deployment{
		Key: key("pool"), UID: "d-uid", Version: "9", Generation: 4, Created: noon.Add(-time.Hour),
		Spec: machine.DeploymentSpec{Replicas: replicas, Selector: map[string]string{"pool": "a"}, Template: template("v1.36.1")},
	}
}

// setOf is a set of the deployment, of a template of a version, with machines that work.
func setOf(d machine.Deployment, kubelet string, replicas int, change ...func(*machine.Set)) (machine.Set, []machine.Machine) {
	d.Spec.Template = template(kubelet)
	s := *machine.DecideDeployment(machine.DeploymentView{Deployment: d, Now: noon, Live: true}).Create
	s.UID, s.Version, s.Created = "set-"+kubelet, "v-"+kubelet, noon.Add(-time.Hour)
	minor := kubelet[len(kubelet)-1:]
	s.Annotations = map[string]string{machine.RevisionAnnotation: strconv.Itoa(int(minor[0]-'0') + 1)}
	s.Spec.Replicas = replicas
	for _, c := range change {
		c(&s)
	}
	var machines []machine.Machine
	for i := range replicas {
		machines = append(machines, member(s, fmt.Sprintf("m%s-%d", minor, i)))
	}
	return s, machines
}

func held(s *machine.Set) { s.Annotations[machine.NoCreateAnnotation] = "old" }

func deploymentView(d machine.Deployment, sets []machine.Set, machines ...[]machine.Machine) machine.DeploymentView {
	all := slices.Concat(machines...)
	return machine.DeploymentView{Deployment: d, Now: noon, Sets: sets, Machines: all, Live: true, Nodes: allReady(all)}
}

// updates are the sets to be written, in words.
func updates(d machine.DeploymentDecision) string {
	var all []string
	for _, u := range d.Update {
		_, hold := u.Set.Annotations[machine.NoCreateAnnotation]
		all = append(all, fmt.Sprintf("%s=%d", strings.TrimPrefix(u.Set.UID, "set-v1.36."), u.Set.Spec.Replicas)+map[bool]string{true: "held"}[hold])
	}
	return strings.Join(all, " ")
}

// TestDeploymentBegins: the set comes first, empty and held, with what the cluster-autoscaler looks for; then its size. R-MA-11.
func TestDeploymentBegins(t *testing.T) {
	d := pool(3)
	got := machine.DecideDeployment(deploymentView(d, nil))
	s := got.Create
	if s == nil || s.Spec.Replicas != 0 || s.Owner != (machine.Owner{UID: "d-uid", Name: "pool"}) || got.Status.Revision != 1 {
		t.Fatalf("first decision: %+v", got)
	}
	hash := d.Spec.Template.Hash()
	if s.Annotations[machine.RevisionAnnotation] != "1" || s.Annotations[machine.NoCreateAnnotation] == "" {
		t.Errorf("annotations: %v", s.Annotations)
	}
	for what, m := range map[string]map[string]string{"labels": s.Labels, "template": s.Spec.Template.Labels} {
		if m[machine.HashLabel] != hash || m[machine.DeploymentLabel] != "pool" || m["pool"] != "a" {
			t.Errorf("%s: %v", what, m)
		}
	}
	if s.Spec.Selector[machine.HashLabel] != hash || s.Spec.Selector["pool"] != "a" {
		t.Errorf("selector: %v", s.Spec.Selector)
	}
	made := *s
	made.UID = "s"
	if then := machine.DecideDeployment(deploymentView(d, []machine.Set{made})); updates(then) != "s=3" {
		t.Errorf("then: %s", updates(then))
	}
}

// TestDeploymentBeginsAgain: killed before the set was made, the same is decided.
func TestDeploymentBeginsAgain(t *testing.T) {
	d := pool(3)
	got := machine.DecideDeployment(deploymentView(d, nil))
	s, stored := got.Create, d
	stored.Status = got.Status
	if again := machine.DecideDeployment(deploymentView(stored, nil)); again.Create.Name != s.Name || again.Store || again.Status.Revision != 1 {
		t.Errorf("decided again: %q, store %v, want %q and nothing to store", again.Create.Name, again.Store, s.Name)
	}
}

// TestDeploymentNamesOfLabels: the cluster-autoscaler finds these, whatever the group. R-MA-11.
func TestDeploymentNamesOfLabels(t *testing.T) {
	for got, want := range map[string]string{
		machine.RevisionAnnotation:    "machinedeployment.clusters.x-k8s.io/revision",
		machine.PausedAnnotation:      "cluster.x-k8s.io/paused",
		machine.DeploymentLabel:       "cluster.x-k8s.io/deployment-name",
		machine.DeleteAnnotation:      "belay.dev/delete-machine",
		machine.NoScaleDownAnnotation: "cluster-autoscaler.kubernetes.io/scale-down-disabled",
		string(machine.PhaseFailed):   "Failed",
	} {
		if got != want {
			t.Errorf("%q, the cluster-autoscaler wants %q", got, want)
		}
	}
}

func amount(n int) machine.Amount { return machine.Amount{Value: n} }

// A rolloutStep is one of the situations of TestRolloutSteps.
type rolloutStep struct {
	name       string
	strategy   machine.Strategy
	old, new   int
	oldHeld    bool
	newTarget  int
	replicas   int
	change     func(v *machine.DeploymentView)
	want, wait string
}

func rolloutSteps() []rolloutStep {
	return []rolloutStep{
		{name: "old ones are held before anything is made", old: 3, replicas: 3, want: "0=3held", wait: "3 machines work of 3, 3 have to"},
		{name: "one more", old: 3, oldHeld: true, replicas: 3, want: "1=1"},
		{name: "two more", strategy: machine.Strategy{MaxSurge: amount(2)}, old: 3, oldHeld: true, replicas: 3, want: "1=2"},
		{name: "none more, one less", strategy: machine.Strategy{MaxUnavailable: amount(1)}, old: 3, oldHeld: true, replicas: 3, want: "0=2held"},
		{name: "half of 3 less is 1", strategy: machine.Strategy{MaxUnavailable: machine.Amount{Value: 50, Percent: true}}, old: 3, oldHeld: true, replicas: 3, want: "0=2held"},
		{name: "one is new", old: 3, oldHeld: true, new: 1, newTarget: 1, replicas: 3, want: "0=2held"},
		{name: "one is new and does not work", old: 3, oldHeld: true, new: 1, newTarget: 1, replicas: 3, change: func(v *machine.DeploymentView) {
			notJoined(&v.Machines[3])
		}, want: "", wait: "3 machines work of 4"},
		{name: "old one that does not work goes first", old: 3, oldHeld: true, new: 1, newTarget: 1, replicas: 3, change: func(v *machine.DeploymentView) {
			v.Nodes[key("m0-1")] = conditions("Ready", "False", noon)
		}, want: "0=2held"},
		{name: "all old ones do not work: not all at once", old: 3, oldHeld: true, new: 1, newTarget: 1, replicas: 3, change: func(v *machine.DeploymentView) {
			for i := range 3 {
				v.Nodes[v.Machines[i].Key] = conditions("Ready", "Unknown", noon)
			}
		}, want: "0=2held"},
		{name: "nothing is known", old: 3, oldHeld: true, new: 1, newTarget: 1, replicas: 3, change: func(v *machine.DeploymentView) { v.Nodes = nil }, wait: "unknown"},
	}
}

func rolloutStepsMore() []rolloutStep {
	return []rolloutStep{
		{name: "old one on its way leaves no room", old: 3, oldHeld: true, new: 1, newTarget: 1, replicas: 3, change: func(v *machine.DeploymentView) {
			v.Sets[0].Spec.Replicas = 2
			deleted(&v.Machines[0])
		}, want: ""},
		{name: "one goes already, and another is broken and stays", strategy: machine.Strategy{MaxUnavailable: amount(1)}, old: 3, oldHeld: true, new: 1, newTarget: 1, replicas: 3,
			change: func(v *machine.DeploymentView) {
				v.Sets[0].Spec.Replicas = 2
				v.Nodes[key("m0-2")] = conditions("Ready", "False", noon)
				annotated(machine.QuarantineAnnotation, "")(&v.Machines[2])
			}, want: "", wait: "2 machines work of 3, 2 have to"},
		{name: "one may go, as another is broken and stays", strategy: machine.Strategy{MaxUnavailable: amount(2)}, old: 4, oldHeld: true, replicas: 4,
			change: func(v *machine.DeploymentView) {
				v.Nodes[key("m0-2")] = conditions("Ready", "False", noon)
				annotated(machine.QuarantineAnnotation, "")(&v.Machines[2])
			}, want: "0=3held"},
		{name: "one that is reserved leaves no room", old: 2, oldHeld: true, new: 1, newTarget: 1, replicas: 3, change: func(v *machine.DeploymentView) {
			v.Sets[0].Status.Reserved = reserved(1)
		}, want: ""},
		{name: "room again", old: 2, oldHeld: true, new: 1, newTarget: 1, replicas: 3, want: "1=2"},
		{name: "replicas alone start nothing", new: 3, newTarget: 3, replicas: 5, want: "1=5"},
		{name: "fewer replicas", new: 3, newTarget: 3, replicas: 1, want: "1=1"},
		{name: "fewer replicas while old ones go", old: 3, oldHeld: true, new: 1, newTarget: 1, replicas: 1, want: "0=0held"},
		{name: "a target that was not reached is taken back", old: 3, oldHeld: true, new: 0, newTarget: 3, replicas: 3, want: "1=1"},
		{name: "OnDelete leaves them", strategy: machine.Strategy{Type: machine.OnDelete}, old: 3, oldHeld: true, replicas: 3, want: ""},
		{name: "OnDelete follows", strategy: machine.Strategy{Type: machine.OnDelete}, old: 2, oldHeld: true, replicas: 3, want: "1=1"},
		{name: "OnDelete shrinks", strategy: machine.Strategy{Type: machine.OnDelete}, old: 3, oldHeld: true, replicas: 2, want: "0=2held"},
		{name: "skew", old: 3, oldHeld: true, replicas: 3, change: func(v *machine.DeploymentView) { v.Skew = "too new" }, want: "", wait: "too new"},
		{name: "skew stops what has begun", old: 3, oldHeld: true, new: 1, newTarget: 1, replicas: 3, change: func(v *machine.DeploymentView) { v.Skew = "too new" }, want: ""},
		{name: "paused", old: 3, oldHeld: true, new: 1, newTarget: 1, replicas: 3, change: func(v *machine.DeploymentView) { v.Deployment.Spec.Paused = true }, wait: "paused"},
		{name: "control plane", old: 3, oldHeld: true, new: 1, newTarget: 1, replicas: 3, change: func(v *machine.DeploymentView) {
			for i := range 3 {
				roles("control-plane")(&v.Machines[i])
			}
		}, want: "", wait: "spec.decommission"},
		{name: "control plane, one entered", old: 3, oldHeld: true, new: 1, newTarget: 1, replicas: 3, change: func(v *machine.DeploymentView) {
			for i := range 3 {
				roles("control-plane")(&v.Machines[i])
			}
			decommissioned(&v.Machines[1])
		}, want: "0=2held"},
	}
}

// TestRolloutSteps: what is done to the sets in each situation. Sets are named by the patch of their kubelet; the deployment wants .1.
func TestRolloutSteps(t *testing.T) {
	for _, c := range slices.Concat(rolloutSteps(), rolloutStepsMore()) {
		t.Run(c.name, func(t *testing.T) {
			d := pool(c.replicas)
			d.Spec.Strategy = c.strategy
			old, oldMachines := setOf(d, "v1.36.0", c.old)
			next, nextMachines := setOf(d, "v1.36.1", c.new)
			next.Spec.Replicas = c.newTarget
			if c.oldHeld {
				held(&old)
			}
			sets := []machine.Set{old, next}
			if c.old == 0 {
				sets = sets[1:]
			}
			v := deploymentView(d, sets, oldMachines, nextMachines)
			if c.change != nil {
				c.change(&v)
			}
			got := machine.DecideDeployment(v)
			if updates(got) != c.want || !strings.Contains(got.Status.Message, c.wait) {
				t.Errorf("sets %q, message %q; want %q, %q", updates(got), got.Status.Message, c.want, c.wait)
			}
			if got.Create != nil || len(got.Moves)+len(got.Adopt)+len(got.Delete) > 0 {
				t.Errorf("more is done: %+v", got)
			}
		})
	}
}

// TestDeploymentNeedsLive: a cache decides nothing. R-MA-09.
func TestDeploymentNeedsLive(t *testing.T) {
	d := pool(3)
	v := deploymentView(d, nil)
	v.Live = false
	if got := machine.DecideDeployment(v); got.Create != nil || !got.NeedLive {
		t.Errorf("without sets: %+v", got)
	}
	s, machines := setOf(d, "v1.36.0", 3)
	v = deploymentView(d, []machine.Set{s}, machines)
	v.Live = false
	if got := machine.DecideDeployment(v); len(got.Update) > 0 || !got.NeedLive || got.Status.Available != 3 {
		t.Errorf("with an old set: %+v", got)
	}
}

// TestRollback: the set of a template that was there before is used again, with a new revision, when the others are held.
func TestRollback(t *testing.T) {
	d := pool(3)
	d.Spec.Template = template("v1.36.0")
	old, _ := setOf(d, "v1.36.0", 0, held)
	broken, machines := setOf(d, "v1.36.1", 3)
	got := machine.DecideDeployment(deploymentView(d, []machine.Set{old, broken}, machines))
	if updates(got) != "0=0held 1=3held" || got.Update[0].Set.Annotations[machine.RevisionAnnotation] != "3" || got.Status.Revision != 3 || got.Create != nil {
		t.Fatalf("first: %s, revision %d", updates(got), got.Status.Revision)
	}
	got = machine.DecideDeployment(deploymentView(d, []machine.Set{got.Update[0].Set, got.Update[1].Set}, machines))
	if updates(got) != "0=1" {
		t.Errorf("then: %s", updates(got))
	}
}

// TestNameCollision: a name that others have is not used.
func TestNameCollision(t *testing.T) {
	d := pool(1)
	first := machine.DecideDeployment(deploymentView(d, nil)).Create
	stranger := machine.Set{Key: first.Key, UID: "x", Owner: machine.Owner{UID: "x", Name: "x"}}
	got := machine.DecideDeployment(deploymentView(d, []machine.Set{stranger}))
	if got.Create == nil || got.Create.Name == first.Name || got.Status.Collisions != 1 || !got.Store {
		t.Fatalf("beside a stranger: %+v", got)
	}
	if got.Create.Labels[machine.HashLabel] == first.Labels[machine.HashLabel] {
		t.Errorf("the same label %q for two sets", first.Labels[machine.HashLabel])
	}
	going := *first
	going.UID, going.Deleted = "y", noon
	if got := machine.DecideDeployment(deploymentView(d, []machine.Set{going})); got.Create == nil || got.Create.Name == first.Name {
		t.Errorf("beside one that is being deleted: %+v", got)
	}
	mine := *first
	mine.UID = "z"
	if got := machine.DecideDeployment(deploymentView(d, []machine.Set{mine})); got.Create != nil || got.Status.Collisions != 0 {
		t.Errorf("beside its own: %+v", got)
	}
	twin := mine
	twin.Name, twin.UID, twin.Created = "twin", "twin", noon
	if got := machine.DecideDeployment(deploymentView(d, []machine.Set{twin, mine})); got.Create != nil || updates(got) != "z=1" {
		t.Errorf("of two twins: %s", updates(got))
	}
}

// TestStockoutIsData: it shows on the deployment, and is no word of a rollout that stands still. R-MA-11.
func TestStockoutIsData(t *testing.T) {
	d := pool(3)
	s, machines := setOf(d, "v1.36.1", 3)
	s.Status.Failure = &machine.Failure{Reason: string(provider.Stockout), Message: "none left", Since: noon}
	machines[0].Node = nil
	d.Status.Progressed, d.Status.Observed = noon.Add(-time.Hour), d.Generation
	got := machine.DecideDeployment(deploymentView(d, []machine.Set{s}, machines))
	if f := got.Status.Failure; f == nil || f.Reason != "Stockout" || f.Message != "none left" {
		t.Errorf("failure: %+v", f)
	}
}
