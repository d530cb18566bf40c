// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// A planRule is a rule with its selectors compiled.
type planRule struct {
	*Rule
	index      int
	selector   labels.Selector // nil matches everything
	namespaces labels.Selector // nil matches everything
}

func compileRules(rules []Rule) []planRule {
	compiled := make([]planRule, 0, len(rules))
	for i := range rules {
		r := planRule{Rule: &rules[i], index: i}
		var err, other error
		if r.Selector != nil {
			r.selector, err = metav1.LabelSelectorAsSelector(r.Selector)
		}
		if r.NamespaceSelector != nil {
			r.namespaces, other = metav1.LabelSelectorAsSelector(r.NamespaceSelector)
		}
		if err != nil || other != nil {
			continue // Validate has refused it; what it means is not known
		}
		compiled = append(compiled, r)
	}
	return compiled
}

// A ruleMatch is what a rule makes of a pod.
type ruleMatch struct {
	matches bool
	until   time.Time // when it stops to match by itself; zero for never
	why     string    // what the pod was known by, for messages
	invalid string    // why there is no saying whether it matches
}

// matchRule applies the conditions of a rule. What the snapshot may not know comes last: it counts for pods that
// everything else matches.
func matchRule(n *nodePass, r *planRule, pod *corev1.Pod) ruleMatch {
	m := ruleMatch{matches: true}
	if !r.matchesIdentity(pod) || !holdsResource(pod, r.Resources) {
		return ruleMatch{}
	}
	for i := range r.Annotations {
		matchAnnotation(&m, &r.Annotations[i], pod, n.now)
	}
	if m.matches && r.Filter != nil {
		var why string
		m.matches, why = r.Filter(pod)
		m.why = cmp.Or(why, m.why)
	}
	if m.matches && r.namespaces != nil {
		matchNamespace(&m, r, n.s, pod)
	}
	if m.matches && len(r.Volumes)+len(r.StorageClasses) > 0 {
		matchVolumes(&m, r, n, pod)
	}
	if !m.matches {
		return ruleMatch{until: m.until}
	}
	return m
}

// matchesIdentity compares what stands in the pod itself.
func (r *planRule) matchesIdentity(pod *corev1.Pod) bool {
	if len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, pod.Namespace) {
		return false
	}
	if len(r.OwnerKinds) > 0 {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || !slices.Contains(r.OwnerKinds, owner.Kind) && !slices.Contains(r.OwnerKinds, anyOwner) {
			return false
		}
	}
	if len(r.PriorityClasses) > 0 && !slices.Contains(r.PriorityClasses, pod.Spec.PriorityClassName) {
		return false
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

// anyOwner stands for every kind of owner.
const anyOwner = "*"

// holdsResource reports whether the pod requests one of the resources; without any it does.
func holdsResource(pod *corev1.Pod, resources []string) bool {
	requests := func(c corev1.Container) bool {
		return slices.ContainsFunc(resources, func(name string) bool {
			q := c.Resources.Requests[corev1.ResourceName(name)]
			return q.Sign() > 0
		})
	}
	return len(resources) == 0 || slices.ContainsFunc(pod.Spec.Containers, requests) ||
		slices.ContainsFunc(pod.Spec.InitContainers, requests)
}

// matchAnnotation applies one condition on an annotation.
func matchAnnotation(m *ruleMatch, a *AnnotationMatch, pod *corev1.Pod, now time.Time) {
	value, there := pod.Annotations[a.Key]
	if !there {
		m.matches = false
		return
	}
	why := fmt.Sprintf("its annotation %s is %q", a.Key, value)
	listed := slices.Contains(a.Values, value) || len(a.Values) == 0 && !a.OrDuration && !a.NamesLocalVolumes
	switch {
	case listed || a.NamesLocalVolumes && namesLocalVolumes(pod, value):
		m.why = cmp.Or(m.why, why)
	case a.OrDuration && value != "false":
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			m.invalid = fmt.Sprintf("%s, want %s, \"false\", or a duration such as \"90m\"", why, quoteWords(a.Values))
			return
		}
		end := pod.CreationTimestamp.Add(d)
		if pod.Status.StartTime != nil {
			end = pod.Status.StartTime.Add(d)
		}
		if !now.Before(end) {
			m.matches = false
			return
		}
		m.until, m.why = firstTime(m.until, end), cmp.Or(m.why, why+", which ends at "+planTime(end))
	default:
		m.matches = false
	}
}

// firstTime is the earlier of two times, of which zero is none.
func firstTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// namesLocalVolumes reports whether a list with commas names each volume of the pod with data on the node.
func namesLocalVolumes(pod *corev1.Pod, list string) bool {
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		inMemory := v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory
		if local := v.HostPath != nil || v.EmptyDir != nil && !inMemory; local && !slices.Contains(names, v.Name) {
			return false
		}
	}
	return true
}

// matchNamespace compares the labels of the pod's namespace.
func matchNamespace(m *ruleMatch, r *planRule, s *Snapshot, pod *corev1.Pod) {
	namespace, known := s.Namespaces[pod.Namespace]
	if !known {
		m.invalid = fmt.Sprintf("%s asks for labels of namespace %q, which is not known here", r, pod.Namespace)
		return
	}
	m.matches = r.namespaces.Matches(labels.Set(namespace))
}

// The kinds of volumes that a rule may name.
const (
	volumeEmptyDir = "EmptyDir"
	volumeHostPath = "HostPath"
	volumeClaim    = "PersistentVolumeClaim"
	volumeLocal    = "Local"
)

// matchVolumes looks for a volume of one of the kinds, and for a claim of one of the classes.
func matchVolumes(m *ruleMatch, r *planRule, n *nodePass, pod *corev1.Pod) {
	claims := claimsOf(pod)
	kind, class := hasVolumeKind(r.Volumes, pod, claims), len(r.StorageClasses) == 0
	local := !kind && slices.Contains(r.Volumes, volumeLocal)
	for _, name := range claims {
		if class && (kind || !local) {
			break
		}
		claim := n.s.Claims[types.NamespacedName{Namespace: pod.Namespace, Name: name}]
		if claim == nil {
			m.invalid = fmt.Sprintf("%s asks for the volume of its claim %q, which is not known here", r, name)
			return
		}
		volume := n.s.Volumes[claim.Spec.VolumeName]
		kind = kind || local && volume != nil && volumeOnNode(volume, n.view.Node)
		class = class || slices.Contains(r.StorageClasses, classOf(claim, volume))
	}
	m.matches = kind && class
}

// hasVolumeKind reports whether the pod alone shows a volume of one of the kinds. No kinds are any.
func hasVolumeKind(kinds []string, pod *corev1.Pod, claims []string) bool {
	if len(kinds) == 0 || len(claims) > 0 && slices.Contains(kinds, volumeClaim) {
		return true
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.EmptyDir != nil && slices.Contains(kinds, volumeEmptyDir) ||
			v.HostPath != nil && slices.Contains(kinds, volumeHostPath)
	})
}

// classOf is the name of a claim's StorageClass; "" is a claim without one.
func classOf(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) string {
	switch {
	case claim.Spec.StorageClassName != nil:
		return *claim.Spec.StorageClassName
	case volume != nil:
		return volume.Spec.StorageClassName
	}
	return ""
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
	why      string // what the rule knew the pod by
	invalid  string // what is wrong with it
	found    bool   // hooks holds the PodResponder that found the pod
}

// behaviorOf asks the rules, then the pod.
func behaviorOf(n *nodePass, pod *corev1.Pod) planBehavior {
	var b planBehavior
	for i := range n.rules {
		r := &n.rules[i]
		m := matchRule(n, r, pod)
		n.wake(m.until)
		if !m.matches {
			continue
		}
		b = planBehavior{kind: r.Behavior, rule: r, byRule: r.Behavior != "", tier: r.Tier, deadline: r.Deadline,
			hooks: r.Hooks, why: m.why, invalid: m.invalid}
		if b.invalid != "" {
			b.kind, b.byRule = "", false
			return b
		}
		break
	}
	if b.kind == "" && !n.p.IgnorePodLabels {
		b.ask(pod)
	}
	switch b.kind {
	case "", BehaviorEvict, BehaviorSkip, BehaviorWaitCompleted, BehaviorBlock:
	case BehaviorHook:
		if len(b.hooks) == 0 && b.invalid == "" {
			b.invalid = b.source() + " asks for a hook and names no responder"
		}
	default:
		b.invalid = fmt.Sprintf("%s asks for behavior %q, want %s", b.source(), b.kind, behaviorNames)
	}
	return b
}

const behaviorNames = `"Evict", "Skip", "WaitCompleted", "Hook" or "Block"`

// boundedBehaviors are those that a deadline means something to.
var boundedBehaviors = []Behavior{BehaviorHook, BehaviorWaitCompleted, BehaviorBlock}

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
	if text, ok := pod.Annotations[deadlineAnnotation]; ok && slices.Contains(boundedBehaviors, b.kind) {
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

// blockedByBehavior says why a pod stays that a rule, or its own label, keeps on the node.
func blockedByBehavior(n *nodePass, w *podWork) (Reason, string) {
	if w.behavior.kind != BehaviorBlock {
		return reasonNone, ""
	}
	message := w.behavior.source() + " keeps it"
	if d := w.behavior.deadline; d > 0 && !n.view.Started.IsZero() {
		end := n.view.Started.Add(d)
		if !n.now.Before(end) {
			return reasonNone, ""
		}
		n.wake(end)
		message += ", until " + planTime(end)
	}
	if w.behavior.why != "" {
		message += ": " + w.behavior.why
	}
	return reasonBlockedByRule, message
}

// The annotations of other projects that [PresetRules] reads.
const (
	doNotDisrupt = "karpenter.sh/do-not-disrupt"
	safeToEvict  = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	localVolumes = safeToEvict + "-local-volumes"
)

// PresetRules returns the rules that read an annotation which another project has defined for pods, by its key or by the
// part of that after the slash:
//
//   - karpenter.sh/do-not-disrupt: "true" keeps the pod, and a duration keeps it for that long after its start.
//   - cluster-autoscaler.kubernetes.io/safe-to-evict: "false" keeps the pod; "true" evicts it with the loss of its local
//     data, and also without a controller. The annotation safe-to-evict-local-volumes lists volumes of a pod that has a
//     controller: the loss of those is allowed. Neither allows the loss of a last replica: see [Removal].
//
// A kept pod blocks the drain until the rule does not match it any more, or a step of [Policy].Escalation takes it. The
// annotation on a Node is not read: a drain that was asked for is no choice of a node.
func PresetRules(name string) ([]Rule, error) {
	read := func(key string, m AnnotationMatch, behavior Behavior) Rule {
		m.Key = key
		return Rule{Name: key, PodMatch: PodMatch{Annotations: []AnnotationMatch{m}}, Behavior: behavior}
	}
	switch name {
	case doNotDisrupt, path.Base(doNotDisrupt):
		return []Rule{read(doNotDisrupt, AnnotationMatch{Values: []string{"true"}, OrDuration: true}, BehaviorBlock)}, nil
	case safeToEvict, path.Base(safeToEvict):
		listed := read(localVolumes, AnnotationMatch{NamesLocalVolumes: true}, BehaviorEvict)
		listed.OwnerKinds = []string{anyOwner}
		return []Rule{
			read(safeToEvict, AnnotationMatch{Values: []string{"false"}}, BehaviorBlock),
			read(safeToEvict, AnnotationMatch{Values: []string{"true"}}, BehaviorEvict), listed,
		}, nil
	}
	known := quoteWords([]string{doNotDisrupt, safeToEvict})
	return nil, fmt.Errorf("drain.PresetRules: name is %q, want %s: %w", name, known, ErrOption)
}
