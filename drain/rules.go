// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A planRule is a rule with its selector compiled.
type planRule struct {
	*Rule
	index    int
	selector labels.Selector // nil matches everything
}

func compileRules(rules []Rule) []planRule {
	compiled := make([]planRule, 0, len(rules))
	for i := range rules {
		r := planRule{Rule: &rules[i], index: i}
		if r.Selector != nil {
			s, err := metav1.LabelSelectorAsSelector(r.Selector)
			if err != nil {
				continue // Validate has refused it; what it means is not known
			}
			r.selector = s
		}
		compiled = append(compiled, r)
	}
	return compiled
}

func (r *planRule) matches(pod *corev1.Pod) bool {
	if len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, pod.Namespace) {
		return false
	}
	if len(r.OwnerKinds) > 0 {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || !slices.Contains(r.OwnerKinds, owner.Kind) {
			return false
		}
	}
	var priority int32
	if pod.Spec.Priority != nil {
		priority = *pod.Spec.Priority
	}
	if r.MinPriority != nil && priority < *r.MinPriority || r.MaxPriority != nil && priority > *r.MaxPriority {
		return false
	}
	return r.selector == nil || r.selector.Matches(labels.Set(pod.Labels))
}

func (r *planRule) String() string {
	if r.Name == "" {
		return fmt.Sprintf("rule %d", r.index)
	}
	return fmt.Sprintf("rule %q", r.Name)
}

// A planBehavior is what a rule, or the pod itself, asks for.
type planBehavior struct {
	kind     Behavior
	rule     *planRule // the rule that matched; nil for none
	byRule   bool      // the rule has said kind
	tier     int32
	deadline time.Duration
	hooks    []string
	invalid  string // what is wrong with it
	found    bool   // hooks holds the PodResponder that found the pod
}

// behaviorOf asks the rules, then the pod.
func (pl *planner) behaviorOf(pod *corev1.Pod) planBehavior {
	var b planBehavior
	for i := range pl.rules {
		if r := &pl.rules[i]; r.matches(pod) {
			b = planBehavior{kind: r.Behavior, rule: r, byRule: r.Behavior != "", tier: r.Tier, deadline: r.Deadline, hooks: r.Hooks}
			break
		}
	}
	if b.kind == "" && !pl.p.IgnorePodLabels {
		b.ask(pod)
	}
	switch b.kind {
	case "", BehaviorEvict, BehaviorSkip, BehaviorWaitCompleted:
	case BehaviorHook:
		if len(b.hooks) == 0 && b.invalid == "" {
			b.invalid = b.source() + " asks for a hook and names no responder"
		}
	default:
		b.invalid = fmt.Sprintf("%s asks for behavior %q, want %s", b.source(), b.kind, behaviorNames)
	}
	return b
}

const behaviorNames = `"Evict", "Skip", "WaitCompleted" or "Hook"`

// ask reads what the pod says of itself. The hooks and the deadline of its rule stand in for what it does not say.
func (b *planBehavior) ask(pod *corev1.Pod) {
	hooks, hooked := pod.Annotations[HookAnnotation]
	label, labeled := pod.Labels[behaviorLabel]
	switch {
	case labeled:
		b.kind = Behavior(label)
		if label == "" {
			b.invalid = fmt.Sprintf("its label %s is empty, want %s", behaviorLabel, behaviorNames)
		}
	case hooked:
		b.kind = BehaviorHook
	}
	if b.kind == BehaviorHook && hooked {
		b.hooks = strings.Split(hooks, ",")
		for i, h := range b.hooks {
			if b.hooks[i] = strings.TrimSpace(h); b.hooks[i] == "" {
				b.invalid = fmt.Sprintf("its annotation %s is %q, want names of responders with commas between them", HookAnnotation, hooks)
			}
		}
	}
	if text, ok := pod.Annotations[deadlineAnnotation]; ok && (b.kind == BehaviorHook || b.kind == BehaviorWaitCompleted) {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			b.invalid = fmt.Sprintf("its annotation %s is %q, want a duration above zero, for example \"30m\"", deadlineAnnotation, text)
		}
		b.deadline = d
	}
}

// source says who asked.
func (b *planBehavior) source() string {
	if b.byRule {
		return b.rule.String()
	}
	return "its own label or annotation"
}
