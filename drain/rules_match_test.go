// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

const (
	doNotDisrupt = "karpenter.sh/do-not-disrupt"
	safeToEvict  = "cluster-autoscaler.kubernetes.io/safe-to-evict"

	blockedByRule drain.Reason = "BlockedByRule"
)

// startedAt has the kubelet start a pod a while after the start of the drain.
func startedAt(d time.Duration) podOption {
	return func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: planStart().Add(d)} }
}

func requesting(name, amount string) podOption {
	return func(p *corev1.Pod) {
		list := corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(amount)}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: list},
		})
	}
}

func inMemory(p *corev1.Pod) {
	p.Spec.Volumes[len(p.Spec.Volumes)-1].EmptyDir.Medium = corev1.StorageMediumMemory
}

// presets joins the rules of presets.
func presets(t *testing.T, names ...string) (rules []drain.Rule) {
	t.Helper()
	for _, name := range names {
		more, err := drain.PresetRules(name)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, more...)
	}
	return rules
}

// R-DR-13: a rule knows pods by their annotations, namespace, priority class, resources, volumes, and by code.
func TestRulesMatchMoreThanLabels(t *testing.T) {
	class, local := "fast", "local"
	claims := map[types.NamespacedName]*corev1.PersistentVolumeClaim{}
	claim := func(name string, class *string, volume string) {
		claims[types.NamespacedName{Namespace: "shop", Name: name}] = &corev1.PersistentVolumeClaim{
			Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: class, VolumeName: volume}}
	}
	claim("data", &class, "pv-1")
	claim("disk", &local, "pv-2")
	claim("none", nil, "pv-1")
	volumes := map[string]*corev1.PersistentVolume{
		"pv-1": {ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: "fast"}},
		"pv-2": {ObjectMeta: metav1.ObjectMeta{Name: "pv-2"}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/d"}}}},
	}
	namespaces := map[string]map[string]string{"shop": {"team": "a"}, "lab": {"team": "b"}}
	team := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}
	key := func(m drain.AnnotationMatch) drain.PodMatch {
		m.Key = "example.com/keep"
		return drain.PodMatch{Annotations: []drain.AnnotationMatch{m}}
	}
	kinds := func(kinds ...string) drain.PodMatch { return drain.PodMatch{Volumes: kinds} }
	fast := drain.PodMatch{StorageClasses: []string{"fast"}}
	fastAndLocal := drain.PodMatch{StorageClasses: []string{"fast"}, Volumes: []string{"Local"}}
	code := func(matches bool, resources ...string) drain.PodMatch {
		filter := func(p *corev1.Pod) (bool, string) { return matches && p.Name == "web", "" }
		return drain.PodMatch{Resources: resources, Filter: filter}
	}
	named := key(drain.AnnotationMatch{NamesLocalVolumes: true})
	onHost, other := withHostPath("h", "", true), requesting("nvidia.com/mig", "1")
	gpu := drain.PodMatch{Resources: []string{"example.com/fpga", "nvidia.com/gpu"}}
	prioritized := func(p *corev1.Pod) { p.Spec.PriorityClassName = "batch" }
	keep := func(value string) podOption { return annotated("example.com/keep", value) }
	for name, c := range map[string]struct {
		match drain.PodMatch
		pod   []podOption
		want  bool
	}{
		"any value":            {key(drain.AnnotationMatch{}), []podOption{keep("")}, true},
		"no annotation":        {key(drain.AnnotationMatch{}), nil, false},
		"a listed value":       {key(drain.AnnotationMatch{Values: []string{"a", "b"}}), []podOption{keep("b")}, true},
		"another value":        {key(drain.AnnotationMatch{Values: []string{"a", "b"}}), []podOption{keep("c")}, false},
		"its namespace":        {drain.PodMatch{NamespaceSelector: team}, []podOption{inNamespace("lab")}, true},
		"another namespace":    {drain.PodMatch{NamespaceSelector: team}, nil, false},
		"a class":              {drain.PodMatch{PriorityClasses: []string{"x", "batch"}}, []podOption{prioritized}, true},
		"no class":             {drain.PodMatch{PriorityClasses: []string{"x", "batch"}}, nil, false},
		"a gpu":                {gpu, []podOption{requesting("nvidia.com/gpu", "1")}, true},
		"none of it":           {gpu, []podOption{requesting("nvidia.com/gpu", "0"), other}, false},
		"a host path":          {kinds("HostPath"), []podOption{onHost}, true},
		"no host path":         {kinds("HostPath"), []podOption{withEmptyDir("e", "")}, false},
		"a claim":              {kinds("EmptyDir", "PersistentVolumeClaim"), []podOption{withClaim("data")}, true},
		"a local volume":       {kinds("Local"), []podOption{withClaim("data"), withClaim("disk")}, true},
		"no local volume":      {kinds("Local"), []podOption{withClaim("data")}, false},
		"a storage class":      {fast, []podOption{withClaim("disk"), withClaim("data")}, true},
		"the volume's class":   {fast, []podOption{withClaim("none")}, true},
		"another class":        {fast, []podOption{withClaim("disk")}, false},
		"no claims":            {fast, nil, false},
		"both":                 {fastAndLocal, []podOption{withClaim("data")}, false},
		"names each volume":    {named, []podOption{withEmptyDir("e", ""), onHost, keep("host, e")}, true},
		"names one of them":    {named, []podOption{withEmptyDir("e", ""), onHost, keep("e")}, false},
		"not those in memory":  {named, []podOption{withEmptyDir("e", ""), inMemory, keep("h")}, true},
		"code":                 {code(true), nil, true},
		"code says no":         {code(false), nil, false},
		"code and another one": {code(true, "nvidia.com/gpu"), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			c0 := newPlanCase(planPod("web", c.pod...))
			c0.Claims, c0.Volumes, c0.Namespaces = claims, volumes, namespaces
			c0.policy.Rules = []drain.Rule{{Name: "keep", PodMatch: c.match, Behavior: drain.BehaviorSkip}}
			if got := c0.pod(t, "web"); (got.Reason == "SkippedByRule") != c.want {
				t.Errorf("got %s %q (%s), want it matched: %t", got.Action, got.Reason, got.Message, c.want)
			}
		})
	}
}

// R-DR-13: a rule that cannot be judged moves no pod, also where what is not known would be asked of others alone.
func TestWhatIsNotKnownMovesNoPod(t *testing.T) {
	keep := metav1.LabelSelectorRequirement{Key: "keep", Operator: metav1.LabelSelectorOpExists}
	team := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{keep}}
	c := newPlanCase(planPod("web"), planPod("db", withClaim("lost")), planPod("api", inNamespace("lab")))
	c.Namespaces = map[string]map[string]string{"shop": nil}
	c.policy.Rules = []drain.Rule{
		{Name: "of a team", PodMatch: drain.PodMatch{NamespaceSelector: team}, Behavior: drain.BehaviorBlock},
		{Name: "on fast disks", PodMatch: drain.PodMatch{StorageClasses: []string{"fast"}}, Behavior: drain.BehaviorBlock},
	}
	c.want(t, "web", drain.Evict, "")
	c.want(t, "db", drain.Block, drain.InvalidBehavior, `rule "on fast disks"`, `claim "lost"`)
	c.want(t, "api", drain.Block, drain.InvalidBehavior, `rule "of a team"`, `namespace "lab"`)
}

// R-DR-13: Block keeps a pod, says which rule and why, until its deadline, and a later step takes the pod all the same.
func TestBlockKeepsAPodUntilTheDeadline(t *testing.T) {
	why := func(*corev1.Pod) (bool, string) { return true, "holds lease 7" }
	c := newPlanCase(planPod("web"))
	c.policy.Rules = []drain.Rule{{
		Name: "leases", PodMatch: drain.PodMatch{Filter: why}, Behavior: drain.BehaviorBlock, Deadline: time.Hour,
	}}
	c.want(t, "web", drain.Block, blockedByRule, `rule "leases" keeps it`, "until 2026-08-01T13:00:00Z", "holds lease 7")
	c.wantNext(t, time.Hour)
	c.after(time.Hour)
	c.want(t, "web", drain.Evict, "")

	c.policy.Rules[0].Deadline = 0
	c.policy.Escalation = []drain.Escalation{{After: 2 * time.Hour, Step: drain.StepDelete}}
	got := c.want(t, "web", drain.Block, blockedByRule, "holds lease 7")
	if got.Next != drain.StepDelete || !got.NextAt.Equal(planStart().Add(2*time.Hour)) {
		t.Errorf("next: got %s at %v, want Delete at 14:00", got.Next, got.NextAt)
	}
	// A pod may say so of itself, in the same words.
	deadline := annotated("drain.belay.dev/deadline", "1h")
	c = newPlanCase(planPod("web", labeled("drain.belay.dev/behavior", "Block"), deadline))
	c.want(t, "web", drain.Block, blockedByRule, "its own label", "13:00:00Z")
}

// The annotation of Karpenter: "true", or a duration from the start of the pod, and nothing else.
func TestPresetReadsDoNotDisrupt(t *testing.T) {
	for value, c := range map[string]struct {
		action drain.Action
		reason drain.Reason
		part   string
		next   time.Duration
	}{
		"true":  {drain.Block, blockedByRule, `its annotation karpenter.sh/do-not-disrupt is "true"`, -1},
		"30m":   {drain.Block, blockedByRule, `is "30m", which ends at 2026-08-01T12:20:00Z`, 20 * time.Minute},
		"10m":   {drain.Evict, "", "", -1},
		"false": {drain.Evict, "", "", -1},
		"yes":   {drain.Block, drain.InvalidBehavior, `is "yes", want "true", "false", or a duration`, -1},
		"-5m":   {drain.Block, drain.InvalidBehavior, `is "-5m"`, -1},
		"":      {drain.Block, drain.InvalidBehavior, `is ""`, -1},
	} {
		t.Run(value, func(t *testing.T) {
			p := newPlanCase(planPod("web", annotated(doNotDisrupt, value), startedAt(-10*time.Minute)))
			p.policy.Rules = presets(t, "do-not-disrupt")
			p.want(t, "web", c.action, c.reason, c.part)
			p.wantNext(t, c.next)
		})
	}
	// It keeps no pod of a DaemonSet, none that has finished, and none that is ending.
	c := newPlanCase(
		planPod("ds", annotated(doNotDisrupt, "true"), ownedBy("DaemonSet", "ds")),
		planPod("job", annotated(doNotDisrupt, "true"), inPhase(corev1.PodSucceeded)),
		planPod("old", annotated(doNotDisrupt, "true"), deletedAt(time.Hour)),
	)
	c.policy.Rules = presets(t, doNotDisrupt)
	c.want(t, "ds", drain.Skip, "DaemonSetPod")
	c.want(t, "job", drain.Skip, "Terminal")
	c.want(t, "old", drain.Wait, drain.Terminating)
}

// The annotations of cluster-autoscaler: false keeps a pod; true, or a list of its volumes, allows the loss
// of local data.
func TestPresetReadsSafeToEvict(t *testing.T) {
	safe, listed := annotated(safeToEvict, "true"), annotated(safeToEvict+"-local-volumes", "a,b")
	local := withEmptyDir("a", "")
	for name, c := range map[string]struct {
		pod    []podOption
		action drain.Action
		reason drain.Reason
	}{
		"nothing said":         {nil, drain.Evict, ""},
		"false":                {[]podOption{annotated(safeToEvict, "false")}, drain.Block, blockedByRule},
		"local data":           {[]podOption{withEmptyDir("a", "")}, drain.Block, drain.LocalStorage},
		"local data, true":     {[]podOption{withEmptyDir("a", ""), safe}, drain.Evict, ""},
		"without owner, true":  {[]podOption{unowned, safe}, drain.Evict, ""},
		"listed":               {[]podOption{withEmptyDir("a", ""), withEmptyDir("b", ""), listed}, drain.Evict, ""},
		"one is not listed":    {[]podOption{local, withEmptyDir("c", ""), listed}, drain.Block, drain.LocalStorage},
		"listed, no owner":     {[]podOption{withEmptyDir("a", ""), unowned, listed}, drain.Block, drain.Unmanaged},
		"another word":         {[]podOption{annotated(safeToEvict, "no")}, drain.Evict, ""},
		"false, though listed": {[]podOption{local, annotated(safeToEvict, "false"), listed}, drain.Block, blockedByRule},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlanCase(planPod("web", c.pod...))
			p.policy.Rules = presets(t, "safe-to-evict")
			p.want(t, "web", c.action, c.reason)
		})
	}
}

func TestUnknownPresetIsAnError(t *testing.T) {
	_, err := drain.PresetRules("do-not-evict")
	const want = `"do-not-evict", want "karpenter.sh/do-not-disrupt" or`
	if !errors.Is(err, drain.ErrOption) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error that wraps ErrOption and lists the presets", err)
	}
	for _, name := range []string{doNotDisrupt, safeToEvict} {
		wantErrors(t, drain.Policy{Rules: presets(t, name)}.Validate())
	}
}

// Each error names the field, what it holds, and what would be right.
func TestInvalidPodMatches(t *testing.T) {
	unlike := []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
	both := drain.AnnotationMatch{Key: "c", OrDuration: true, NamesLocalVolumes: true}
	bad := drain.PodMatch{
		Annotations:       []drain.AnnotationMatch{{Key: "a/b"}, {Key: "no key"}, both},
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: unlike},
		PriorityClasses:   []string{""}, Resources: []string{"cpu", "nvidia.com/gpu", "x.kubernetes.io/y"},
		Volumes: []string{"Local", "emptyDir"}, StorageClasses: []string{"a", ""},
	}
	wantErrors(t, drain.Policy{Rules: []drain.Rule{{Name: "x", PodMatch: bad}}}.Validate(),
		`drain: rules[0].annotations[1].key is "no key", want the key of an annotation`,
		"rules[0].annotations[2].namesLocalVolumes is set beside orDuration",
		"rules[0].namespaceSelector cannot be read", "rules[0].priorityClasses[0] is empty",
		`rules[0].resources[0] is "cpu", want an extended resource`, `rules[0].resources[2] is "x.kubernetes.io/y"`,
		`rules[0].volumes[1] is "emptyDir", want "EmptyDir", "HostPath", "PersistentVolumeClaim" or "Local"`,
		"rules[0].storageClasses[1] is empty")
}

// A rule is written flat, read back as it was, and refused where code would be lost.
func TestRuleWithCodeHasNoJSON(t *testing.T) {
	rule := drain.Rule{Name: "gpu", Behavior: drain.BehaviorBlock, PodMatch: drain.PodMatch{
		Resources: []string{"nvidia.com/gpu"}, Annotations: []drain.AnnotationMatch{{Key: "a", Values: []string{"b"}}},
	}}
	text, err := json.Marshal(drain.Policy{Rules: []drain.Rule{rule}})
	want := `{"rules":[{"name":"gpu","annotations":[{"key":"a","values":["b"]}],` +
		`"resources":["nvidia.com/gpu"],"behavior":"Block"}]}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	var back drain.Policy
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back.Rules[0], rule) {
		t.Errorf("got %+v, %v, want %+v", back.Rules, err, rule)
	}
	rule.Filter = func(*corev1.Pod) (bool, string) { return true, "" }
	if _, err := json.Marshal(drain.Policy{Rules: []drain.Rule{rule}}); !errors.Is(err, drain.ErrOption) ||
		!strings.Contains(err.Error(), `filter of rule "gpu" is code`) {
		t.Errorf("got %v, want an error that names the filter", err)
	}
	if c := rule; (&drain.Policy{Rules: []drain.Rule{c}}).DeepCopy().Rules[0].Filter == nil {
		t.Error("the copy has no filter")
	}
}

// A rule that the cache cannot answer is an error before the first write, and names its field.
func TestRuleBeyondTheCacheIsAnError(t *testing.T) {
	for want, match := range map[string]drain.PodMatch{
		"Policy.Rules[1].namespaceSelector needs a cache that knows namespaces (NamespaceCache": {
			NamespaceSelector: &metav1.LabelSelector{}},
		"Policy.Rules[1] asks for volumes of claims: it needs a cache that knows volumes": {Volumes: []string{"Local"}},
		`Policy.Rules[1].annotations[0].key is "a", which the cache does not keep`: {
			Annotations: []drain.AnnotationMatch{{Key: "a"}}},
	} {
		stage(t, draintest.Options{}, func(o *drain.Options) { o.Cache = forgetfulCache{o.Cache} }, func(s *stageTest) {
			s.web("web", 1, "n1")
			rules := []drain.Rule{{Name: "first"}, {Name: "x", PodMatch: match}}
			r := s.request("n1", func(r *drain.Request) { r.Policy.Rules = rules })
			_, _, err := s.d.ReconcileRequest(s.Context(), r)
			if !errors.Is(err, drain.ErrOption) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error that wraps ErrOption with %q", err, want)
			}
			if n := s.c.Node("n1"); n.Spec.Unschedulable {
				t.Error("the node is cordoned, want the error before the first write")
			}
			if _, err := s.d.Plan(s.Context(), r.Policy, "n1"); !errors.Is(err, drain.ErrOption) {
				t.Errorf("plan: got %v, want an error that wraps ErrOption", err)
			}
		})
	}
}

// A forgetfulCache knows neither volumes nor namespaces, and keeps no annotation.
type forgetfulCache struct{ drain.Cache }

func (forgetfulCache) KeepsAnnotation(string) bool { return false }
