// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// rulesFor keeps pods by each thing that a cache has to know for it.
func rulesFor(t *testing.T, c *cluster) drain.Policy {
	t.Helper()
	_, err := c.admin.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace}, Value: 7,
	}, metav1.CreateOptions{})
	must(t, err)
	label := fmt.Appendf(nil, `{"metadata":{"labels":{"team":%q}}}`, c.namespace)
	_, err = c.admin.CoreV1().Namespaces().Patch(t.Context(), c.namespace, types.MergePatchType, label,
		metav1.PatchOptions{})
	must(t, err)
	rules, err := drain.PresetRules("do-not-disrupt")
	must(t, err)
	named := func(name string, m drain.PodMatch) drain.Rule {
		return drain.Rule{Name: name, PodMatch: m, Behavior: drain.BehaviorBlock}
	}
	late := named("team", drain.PodMatch{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": c.namespace}}})
	late.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"of": "team"}}
	return drain.Policy{Unmanaged: drain.EvictPods, Rules: append(rules,
		named("gpu", drain.PodMatch{Resources: []string{"example.com/gpu"}}),
		named("class", drain.PodMatch{PriorityClasses: []string{c.namespace}}),
		named("own annotation", drain.PodMatch{Annotations: []drain.AnnotationMatch{{Key: "example.com/keep"}}}),
		late,
	)}
}

// R-DR-13: what rules ask of pods and namespaces is kept by a cache that was made for them, as the server has it.
func TestRulesReadWhatTheServerHas(t *testing.T) {
	c := newCluster(t)
	policy := rulesFor(t, c)
	annotated := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
	}
	node := c.nodeWithPods(t)
	c.runs(t, "free", node, annotated("other", "x"))
	c.runs(t, "undisrupted", node, annotated("karpenter.sh/do-not-disrupt", "true"))
	c.runs(t, "annotated", node, annotated("example.com/keep", ""))
	c.runs(t, "gpu", node, func(p *corev1.Pod) {
		one := corev1.ResourceList{"example.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("1m")}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
	})
	c.runs(t, "class", node, func(p *corev1.Pod) { p.Spec.PriorityClassName = c.namespace })
	c.runs(t, "team", node, func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, "of", "team") })

	d, err := kube.Open(t.Context(), c.env.Config(), kube.OpenOptions{Cache: kube.CacheOptionsFor(policy)})
	must(t, err)
	defer d.Close()
	result, err := d.Plan(t.Context(), policy, node)
	must(t, err)
	var got []string
	for _, p := range result.Nodes[0].Pods {
		who, _, _ := strings.Cut(strings.TrimPrefix(p.Message, "rule "), " keeps it")
		got = append(got, fmt.Sprintf("%s %s %s", p.Name, p.Action, who))
	}
	want := `annotated Block "own annotation", class Block "class", free Evict , gpu Block "gpu", team Block "team", ` +
		`undisrupted Block "karpenter.sh/do-not-disrupt"`
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, ", "), want)
	}
}

// A cache that was not made for a rule is an error that says what to set, not a pod that moves.
func TestCacheWithoutWhatRulesReadIsAnError(t *testing.T) {
	c := newCluster(t)
	policy := rulesFor(t, c)
	node := c.nodeWithPods(t, "web")
	for _, o := range []struct {
		options kube.CacheOptions
		want    string
	}{
		{kube.CacheOptions{Annotations: []string{"example.com/keep"}}, "Policy.Rules[4].namespaceSelector needs"},
		{kube.CacheOptions{Namespaces: true}, `Policy.Rules[3].annotations[0].key is "example.com/keep"`},
	} {
		d, err := kube.Open(t.Context(), c.env.Config(), kube.OpenOptions{Cache: o.options})
		must(t, err)
		_, err = d.Plan(t.Context(), policy, node)
		if !errors.Is(err, drain.ErrOption) || !strings.Contains(err.Error(), o.want) {
			t.Errorf("%+v: got %v, want an error that wraps ErrOption with %q", o.options, err, o.want)
		}
		d.Close()
	}
}
