// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeepCopyInto writes a copy that shares nothing into out.
func (p *Policy) DeepCopyInto(out *Policy) {
	*out = *p
	out.Rules = copiesOf(p.Rules, (*Rule).deepCopyInto)
	out.GracePeriodSeconds, out.Settle, out.Removal = copyOf(p.GracePeriodSeconds), copyOf(p.Settle), copyOf(p.Removal)
	out.Escalation = copiesOf(p.Escalation, (*Escalation).deepCopyInto)
	out.Windows = slices.Clone(p.Windows)
}

// DeepCopy returns a copy that shares nothing.
func (p *Policy) DeepCopy() *Policy { return deepCopyOf(p, (*Policy).DeepCopyInto) }

func (r *Rule) deepCopyInto(out *Rule) {
	*out = *r
	out.Namespaces, out.OwnerKinds, out.Hooks = slices.Clone(r.Namespaces), slices.Clone(r.OwnerKinds), slices.Clone(r.Hooks)
	out.Selector = deepCopyOf(r.Selector, (*metav1.LabelSelector).DeepCopyInto)
	out.MinPriority, out.MaxPriority = copyOf(r.MinPriority), copyOf(r.MaxPriority)
	out.Annotations = copiesOf(r.Annotations, (*AnnotationMatch).deepCopyInto)
	out.NamespaceSelector = deepCopyOf(r.NamespaceSelector, (*metav1.LabelSelector).DeepCopyInto)
	out.PriorityClasses, out.Resources = slices.Clone(r.PriorityClasses), slices.Clone(r.Resources)
	out.PodMatch.Volumes, out.StorageClasses = slices.Clone(r.PodMatch.Volumes), slices.Clone(r.StorageClasses)
}

func (a *AnnotationMatch) deepCopyInto(out *AnnotationMatch) {
	*out = *a
	out.Values = slices.Clone(a.Values)
}

func (e *Escalation) deepCopyInto(out *Escalation) {
	*out = *e
	out.GracePeriodSeconds = copyOf(e.GracePeriodSeconds)
}

// DeepCopyInto writes a copy that shares nothing into out.
func (s *Status) DeepCopyInto(out *Status) {
	*out = *s
	out.Blockers = copiesOf(s.Blockers, (*Blocker).deepCopyInto)
	out.Evicted, out.Forced = slices.Clone(s.Evicted), slices.Clone(s.Forced)
	out.Attached = copiesOf(s.Attached, (*Attached).deepCopyInto)
}

// DeepCopy returns a copy that shares nothing.
func (s *Status) DeepCopy() *Status { return deepCopyOf(s, (*Status).DeepCopyInto) }

// DeepCopyInto writes a copy that shares nothing into out.
func (s *SetStatus) DeepCopyInto(out *SetStatus) {
	*out = *s
	out.Nodes = copiesOf(s.Nodes, (*Status).DeepCopyInto)
}

// DeepCopy returns a copy that shares nothing.
func (s *SetStatus) DeepCopy() *SetStatus { return deepCopyOf(s, (*SetStatus).DeepCopyInto) }

func (b *Blocker) deepCopyInto(out *Blocker) {
	*out = *b
	out.Budgets = slices.Clone(b.Budgets)
}

func (a *Attached) deepCopyInto(out *Attached) {
	*out = *a
	out.Pods = slices.Clone(a.Pods)
}

// copyOf copies what p points to, which shares nothing.
func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func deepCopyOf[T any](p *T, into func(in, out *T)) *T {
	if p == nil {
		return nil
	}
	out := new(T)
	into(p, out)
	return out
}

func copiesOf[T any](list []T, into func(in, out *T)) []T {
	if list == nil {
		return nil
	}
	out := make([]T, len(list))
	for i := range list {
		into(&list[i], &out[i])
	}
	return out
}
