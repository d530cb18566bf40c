// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// opaque is a Revision whose content is its name.
func opaque(name string) *v1alpha1.Revision {
	r := &v1alpha1.Revision{Spec: v1alpha1.RevisionSpec{Opaque: name, Digest: v1alpha1.OpaqueDigest(name)}}
	r.Name = name
	return r
}

func pinned(name string) v1alpha1.PinnedRevision {
	return v1alpha1.PinnedRevision{Name: name, Digest: v1alpha1.OpaqueDigest(name)}
}

func inPolicy(name string) rollout.Revision {
	return rollout.Revision{Name: name, Digest: v1alpha1.OpaqueDigest(name)}
}

// A shelf is where revisions are found.
type shelf map[string]*v1alpha1.Revision

func shelfOf(names ...string) shelf {
	s := shelf{}
	for _, name := range names {
		s[name] = opaque(name)
	}
	return s
}

func (s shelf) find(name string) (*v1alpha1.Revision, bool) {
	r, ok := s[name]
	return r, ok
}

// rolloutOf reads a Rollout of v2, with what else its spec says in YAML.
func rolloutOf(t *testing.T, more string) *v1alpha1.Rollout {
	t.Helper()
	r := &v1alpha1.Rollout{}
	if err := yaml.UnmarshalStrict([]byte(more), &r.Spec); err != nil {
		t.Fatal(err)
	}
	r.Name, r.UID, r.Generation = "r", "uid-r", 7
	if r.Spec.Revision.Name == "" {
		r.Spec.Revision = pinned("v2")
	}
	if r.Spec.Selector == nil && r.Spec.Groups == nil {
		r.Spec.Selector = &metav1.LabelSelector{}
	}
	return r
}

const everything = `
groups:
- name: gpu
  nodes: [g1, g2]
- name: rest
  selector: {matchLabels: {pool: rest}}
stages:
- {name: canary, groups: [rest], size: 2, soak: 1h, gates: [smoke], approval: true, caps: [{scope: Group, key: rest, max: 1}]}
- {name: half, size: "50%"}
- {name: all}
caps: [{scope: Total, max: "10%"}, {scope: Zone, max: 3}, {scope: Class, key: NonIntrusive, max: 50}]
windows:
- {days: [Monday, Sunday], open: "22:30", close: "04:00", zone: Europe/Berlin}
- {open: "00:00", close: "24:00"}
cycle: 20m
detectors: [{cusum: {}}, {cusum: {good: "0.5%", bad: "20%", limit: "4.6"}}, {failures: {at: 3}}, {failures: {at: "5%", of: Attempted, after: 20}}]
critical: {selector: {matchLabels: {critical: "yes"}}, nodes: [g1]}
serial: {matchLabels: {role: etcd}}
loseQuorum: true
checks: {controlPlane: Enforce, quorum: Warn, data: Warn, caps: Warn}
attempts: 2
retryAfter: 30s
deadlines: {commit: 1m, drain: 2m, apply: 3m, verify: 4m}
stuckDrain: Undo
maxBroken: "2%"
prefetch: 40
verb: {request: q1, do: Acknowledge, node: g2}
`

// R-RO-16: all that can be asked for in a Rollout is in the policy that is decided on.
func TestPolicyHasAllThatIsAskedFor(t *testing.T) {
	r := rolloutOf(t, everything)
	own := pinned("v2-gpu")
	r.Spec.Groups[0].Revision = &own
	r.Status.Completed = &v1alpha1.RolloutTargets{
		Revision: pinned("v1"), Groups: []v1alpha1.GroupRevision{{Name: "gpu", Revision: pinned("v1-gpu")}},
	}
	at := shelfOf("v1", "v2", "v1-gpu", "v2-gpu")
	at["v2"].Spec.Class, at["v2"].Spec.Irreversible, at["v2"].Spec.MinAge = "NonIntrusive", true, &metav1.Duration{Duration: time.Hour}
	at["v2"].CreationTimestamp = metav1.Unix(1_000_000, 0)
	got, err := v1alpha1.PolicyOf(r, at.find)
	if err != nil {
		t.Fatal(err)
	}
	want := everythingWanted(t)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// Nothing of a policy is left out, but for the order, which is code, and for what a controller says of a policy that it can't follow.
	v := reflect.ValueOf(got)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() != (name == "Order" || name == "Unfollowed") {
			t.Errorf("field %s of the policy is %v", name, v.Field(i))
		}
	}
}

func everythingWanted(t *testing.T) rollout.Policy {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	percent := func(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }
	count := func(n int32) *intstr.IntOrString { v := intstr.FromInt32(n); return &v }
	selector := func(key, value string) labels.Selector {
		s, _ := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: map[string]string{key: value}})
		return s
	}
	target, gpu, gpuBefore := inPolicy("v2"), inPolicy("v2-gpu"), inPolicy("v1-gpu")
	target.Class, target.Irreversible, target.MinAge, target.Created = rollout.NonIntrusive, true, time.Hour, time.Unix(1_000_000, 0)
	return rollout.Policy{
		UID: "uid-r", Target: target, Completed: inPolicy("v1"),
		Groups: []rollout.Group{
			{Name: "gpu", Nodes: []string{"g1", "g2"}, Target: &gpu, Completed: &gpuBefore}, {Name: "rest", Selector: selector("pool", "rest")},
		},
		Stages: []rollout.Stage{
			{
				Name: "canary", Groups: []string{"rest"}, Size: count(2), Soak: time.Hour, Gates: []string{"smoke"}, Approval: true,
				Caps: []rollout.Cap{{Scope: rollout.ByGroup, Key: "rest", Max: *count(1)}},
			},
			{Name: "half", Size: percent("50%")}, {Name: "all"},
		},
		Caps: []rollout.Cap{
			{Scope: rollout.Total, Max: *percent("10%")}, {Scope: rollout.ByZone, Max: *count(3)},
			{Scope: rollout.ByClass, Key: "NonIntrusive", Max: *count(50)},
		},
		Windows: []rollout.Window{
			{Days: []time.Weekday{time.Monday, time.Sunday}, Open: 22*time.Hour + 30*time.Minute, Close: 4 * time.Hour, Zone: berlin},
			{Close: 24 * time.Hour},
		},
		Cycle: 20 * time.Minute,
		Detectors: []rollout.Detector{
			rollout.CUSUM{}, rollout.CUSUM{Good: 0.005, Bad: 0.2, Limit: 4.6}, rollout.Failures{At: *count(3)},
			rollout.Failures{At: *percent("5%"), Of: "Attempted", After: 20}, rollout.Critical{Nodes: []string{"g1"}},
		},
		Critical: selector("critical", "yes"), Serial: selector("role", "etcd"), LoseQuorum: true, Attempts: 2, Checks: rollout.Checks{ControlPlane: rollout.Enforce, Quorum: rollout.Warn, Data: rollout.Warn, Caps: rollout.Warn}, RetryAfter: 30 * time.Second,
		CommitWithin: time.Minute, DrainWithin: 2 * time.Minute, ApplyWithin: 3 * time.Minute, VerifyWithin: 4 * time.Minute,
		StuckDrain: rollout.UndoDrain, MaxBroken: percent("2%"), Prefetch: count(40),
		Verb: rollout.Verb{Request: "q1", Do: rollout.Acknowledge, Node: "g2"},
	}
}

// R-RO-28: detectors are the default ones if nothing is said, and none if that is said, also after the spec was stored.
func TestDetectorsCanBeOff(t *testing.T) {
	for _, c := range []struct {
		spec string
		want []rollout.Detector
	}{
		{"{}", nil},
		{"detectors: []", []rollout.Detector{}},
		{"critical: {nodes: [a]}", append(rollout.DefaultDetectors(), rollout.Critical{Nodes: []string{"a"}})},
		{"{detectors: [], critical: {nodes: [a]}}", []rollout.Detector{rollout.Critical{Nodes: []string{"a"}}}},
	} {
		r := rolloutOf(t, c.spec)
		r.Spec = stored(t, r.Spec)
		got, err := v1alpha1.PolicyOf(r, shelfOf("v2").find)
		if err != nil || !reflect.DeepEqual(got.Detectors, c.want) {
			t.Errorf("%s: got %#v, %v, want %#v", c.spec, got.Detectors, err, c.want)
		}
	}
}

// R-RO-16, R-RO-29: the order of nodes is the one that is named; without a name it is the default one, and that of a rollback while there is one.
func TestOrderCanBeNamed(t *testing.T) {
	canary := &rollout.Node{Name: "canary", Labels: map[string]string{"belay.dev/canary": ""}}
	touched := &rollout.Node{Name: "touched", Shadow: &protocol.Shadow{Report: protocol.Report{Attempt: 7}}}
	for _, c := range []struct {
		spec                string
		forwards, backwards bool // whether the node that was touched last is the first
	}{{"{}", false, true}, {"order: Default", false, false}, {"order: Rollback", true, true}} {
		d := newDesk(t, c.spec, "v1", "v2")
		check := func(when string, want bool) {
			t.Helper()
			p, err := v1alpha1.PolicyOf(d.r, d.at.find)
			if got := p.Order != nil && p.Order(touched, canary) < 0; err != nil || got != want || p.Order != nil && !want {
				t.Errorf("%s, %s: the node that was touched last is the first: %t, %v, want %t", c.spec, when, got, err, want)
			}
		}
		d.to("v1")
		d.run("v1")
		d.to("v2")
		check("to v2", c.forwards)
		d.rollback("back", 1)
		check("back to v1", c.backwards)
	}
}

// What a server of today does not refuse, or one of another version, is refused with the name of the field as its user wrote it.
func TestPolicyNamesTheField(t *testing.T) {
	const two = `groups: [{name: a, selector: {}}, {name: b, nodes: [n]}]`
	for _, c := range []struct{ spec, want string }{
		{`selector: {matchLabels: {"a b": c}}`, "spec.selector is"},
		{`selector: {matchExpressions: [{key: a, operator: Like}]}`, "spec.selector is"},
		{two + "\nserial: {matchLabels: {a: \"?\"}}", "spec.serial is"},
		{`critical: {selector: {matchLabels: {a: "?"}}}`, "spec.critical.selector is"},
		{`groups: [{name: a, selector: {matchLabels: {a: "?"}}}]`, "spec.groups[0].selector is"},
		{`groups: [{name: a}]`, "spec.groups[0] is"},
		{two + "\nstages: [{name: x}, {name: y, caps: [{scope: Total, max: 0}]}]", "spec.stages[1].caps[0].max is 0, want 1 or more"},
		{two + "\nstages: [{name: x, groups: [c]}, {name: y}]", `spec.stages[0].groups[0] is "c"`},
		{two + "\nstages: [{name: x, groups: [b]}]", `spec.groups[0] is "a", want a group that one of the stages takes without a size`},
		{`stages: [{name: x, size: 3}]`, "spec.selector is"},
		{`caps: [{scope: Total, max: "101%"}]`, `spec.caps[0].max is "101%"`},
		{`windows: [{open: "9:00", close: "12:00"}]`, `spec.windows[0].open is "9:00"`},
		{`windows: [{open: "09:00", close: "24:01"}]`, `spec.windows[0].close is "24:01"`},
		{`windows: [{open: "09:00", close: "09:00"}]`, "spec.windows[0] is"},
		{`windows: [{open: "09:00", close: "10:00", zone: Europe/Nowhere}]`, `spec.windows[0].zone is "Europe/Nowhere"`},
		{`windows: [{open: "09:00", close: "10:00", zone: Local}]`, `spec.windows[0].zone is "Local"`},
		{`windows: [{open: "09:00", close: "10:00", days: [Monday, monday]}]`, `spec.windows[0].days[1] is "monday"`},
		{"cycle: 2h\nwindows: [{open: \"09:00\", close: \"10:00\"}]", "spec.cycle is 2h0m0s, want up to 1h0m0s"},
		{`detectors: [{}]`, "spec.detectors[0] is"},
		{`detectors: [{cusum: {good: "20%"}}]`, "spec.detectors[0].cusum is"},
		{`detectors: [{cusum: {bad: "20"}}]`, `spec.detectors[0].cusum.bad is "20"`},
		{`detectors: [{failures: {at: "20%"}}]`, "spec.detectors[0].failures is"},
		{`deadlines: {apply: -1m}`, "spec.deadlines.apply is -1m0s"},
		{`stuckDrain: Ignore`, `spec.stuckDrain is "Ignore"`},
		{`order: Random`, `spec.order is "Random"`},
		{`verb: {request: q, do: Restart}`, `spec.verb.do is "Restart"`},
	} {
		_, err := v1alpha1.PolicyOf(rolloutOf(t, c.spec), shelfOf("v2").find)
		if err == nil || !slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(l string) bool { return strings.HasPrefix(l, c.want) }) {
			t.Errorf("%s: got %v, want %s", c.spec, err, c.want)
		}
	}
}

// Errors of Plan name the fields of the Rollout too.
func TestPlanNamesTheField(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{`groups: [{name: a, nodes: [n1, n2]}]`, `spec.groups[0].nodes[0] is "n1", want the name of a node of the domain`},
		{"groups: [{name: a, selector: {}}]\nstages: [{name: all}]", "spec.stages[0] is"},
	} {
		r := rolloutOf(t, c.spec)
		p, err := v1alpha1.PolicyOf(r, shelfOf("v2").find)
		if err != nil {
			t.Fatal(err)
		}
		_, err = rollout.Plan(rollout.Snapshot{}, p, time.Unix(0, 0))
		s := v1alpha1.InvalidStatus(r, err, time.Unix(0, 0))
		if err = v1alpha1.InFields(r, err); err == nil || !strings.HasPrefix(err.Error(), c.want) || !strings.HasPrefix(s.Message, c.want) {
			t.Errorf("%s: got %v and %q, want %s", c.spec, err, s.Message, c.want)
		}
	}
}

// R-RO-33: a revision is its name and its content. Another one under the same name is refused by name.
func TestPolicyRefusesOtherRevisions(t *testing.T) {
	other := shelfOf("v2")
	other["v2"].Spec.Digest = v1alpha1.OpaqueDigest("other")
	other["v2"].Spec.Opaque = "other"
	lies := shelfOf("v2")
	lies["v2"].Spec.Opaque = "other"
	bare := shelfOf("v2")
	bare["v2"].Spec.Opaque = ""
	for _, c := range []struct {
		name string
		at   shelf
		want string
	}{
		{"missing", shelf{}, `spec.revision.name is "v2", want the name of a Revision that there is`},
		{"other digest", other, `spec.revision.digest is "` + v1alpha1.OpaqueDigest("v2") + `", want "` + v1alpha1.OpaqueDigest("other") + `"`},
		{"other content", lies, `spec.revision.digest is "` + v1alpha1.OpaqueDigest("v2") + `", want a Revision that is what it says`},
	} {
		if _, err := v1alpha1.PolicyOf(rolloutOf(t, ""), c.at.find); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := v1alpha1.PolicyOf(rolloutOf(t, ""), bare.find); err != nil {
		t.Errorf("a Revision of which the content was not read: got %v, want it taken by its digest", err)
	}
	r := rolloutOf(t, `groups: [{name: a, selector: {}, revision: {name: x, digest: y}}]`)
	if _, err := v1alpha1.PolicyOf(r, shelfOf("v2").find); err == nil || !strings.HasPrefix(err.Error(), `spec.groups[0].revision.name is "x"`) {
		t.Errorf("a group's own revision: got %v, want it refused by name", err)
	}
}

// A revision that was completed, and is not there any more, is none: nothing can be brought to it.
func TestCompletedRevisionThatIsGone(t *testing.T) {
	r := rolloutOf(t, "")
	r.Status.Completed = &v1alpha1.RolloutTargets{Revision: pinned("v1")}
	for name, c := range map[string]struct {
		at   shelf
		want string
	}{"there": {shelfOf("v1", "v2"), "v1"}, "gone": {shelfOf("v2"), ""}} {
		if got, err := v1alpha1.PolicyOf(r, c.at.find); err != nil || got.Completed.Name != c.want {
			t.Errorf("%s: got %q, %v, want %q", name, got.Completed.Name, err, c.want)
		}
	}
}
