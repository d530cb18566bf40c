// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A domain is a value of a topology label.
type domain struct{ key, value string }

// A podAffinity is what other pods mean for the place of a replacement.
type podAffinity struct {
	terms    []affinityTerm  // required
	anti     []affinityTerm  // required
	near     map[domain]bool // with a pod that matches all terms
	far      map[domain]bool // with a pod that matches an anti-affinity term
	repelled map[domain]bool // with a pod whose own anti-affinity term matches the replacement
}

// An affinityTerm is a required term of inter-pod affinity.
type affinityTerm struct {
	key        string
	selector   labels.Selector
	namespaces []string
	others     labels.Selector // of namespaces; nil for none
}

func requiredAntiAffinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

func requiredAffinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		return a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

func compileTerms(pod *corev1.Pod, terms []corev1.PodAffinityTerm) []affinityTerm {
	compiled := make([]affinityTerm, 0, len(terms))
	for i := range terms {
		t := &terms[i]
		c := affinityTerm{key: t.TopologyKey, selector: selectorOf(t.LabelSelector), namespaces: t.Namespaces}
		if t.NamespaceSelector != nil {
			c.others = selectorOf(t.NamespaceSelector)
		} else if len(c.namespaces) == 0 {
			c.namespaces = []string{pod.Namespace}
		}
		compiled = append(compiled, c)
	}
	return compiled
}

// selectorOf matches nothing where there is no selector, or one that cannot be read.
func selectorOf(s *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// matchesPod reports whether a term is about a pod. A namespace whose labels are not known counts as one that an empty
// selector matches alone.
func (f *filter) matchesPod(t *affinityTerm, pod *corev1.Pod) bool {
	if !t.selector.Matches(labels.Set(pod.Labels)) {
		return false
	}
	if slices.Contains(t.namespaces, pod.Namespace) {
		return true
	}
	if t.others == nil {
		return false
	}
	of, known := f.NamespaceLabels[pod.Namespace]
	if !known && !t.others.Empty() {
		f.noteUnchecked("affinity terms with a namespaceSelector: the labels of namespace %s are not known", pod.Namespace)
		return false
	}
	return t.others.Matches(labels.Set(of))
}

// countAffinity finds where the pods are that attract or repel the replacement.
func (f *filter) countAffinity() {
	a := &f.affinity
	a.terms, a.anti = compileTerms(f.pod, requiredAffinity(f.pod)), compileTerms(f.pod, requiredAntiAffinity(f.pod))
	a.near, a.far, a.repelled = map[domain]bool{}, map[domain]bool{}, map[domain]bool{}
	for _, other := range f.state.repelled {
		for _, t := range compileTerms(other.pod, requiredAntiAffinity(other.pod)) {
			if f.matchesPod(&t, f.pod) {
				markDomain(a.repelled, other.node, t.key)
			}
		}
	}
	if len(a.terms)+len(a.anti) == 0 {
		return
	}
	for _, n := range f.nodes {
		for _, pod := range n.pods {
			if f.matchesAll(a.terms, pod) {
				for _, t := range a.terms {
					markDomain(a.near, n.node, t.key)
				}
			}
			for _, t := range a.anti {
				if f.matchesPod(&t, pod) {
					markDomain(a.far, n.node, t.key)
				}
			}
		}
	}
}

func (f *filter) matchesAll(terms []affinityTerm, pod *corev1.Pod) bool {
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(t affinityTerm) bool { return !f.matchesPod(&t, pod) })
}

func markDomain(in map[domain]bool, node *corev1.Node, key string) {
	if value, ok := node.Labels[key]; ok {
		in[domain{key, value}] = true
	}
}

// checkAffinity looks at the pods in the domains of a Node.
func checkAffinity(f *filter, n *nodeState) string {
	a := &f.affinity
	lonely := len(a.near) == 0 && f.matchesAll(a.terms, f.pod) // the first of a group may go anywhere
	for _, t := range a.terms {
		value, ok := n.node.Labels[t.key]
		if !ok || !lonely && !a.near[domain{t.key, value}] {
			return "node(s) didn't match pod affinity rules"
		}
	}
	for _, t := range a.anti {
		if value, ok := n.node.Labels[t.key]; ok && a.far[domain{t.key, value}] {
			return "node(s) didn't match pod anti-affinity rules"
		}
	}
	for d := range a.repelled {
		if value, ok := n.node.Labels[d.key]; ok && value == d.value {
			return "node(s) didn't satisfy existing pods anti-affinity rules"
		}
	}
	return ""
}
