// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxName bounds names that go into the mark on the Node.
const maxName = 253

// Validate checks everything that can be checked without a cluster. The error joins one for each wrong field; each names the field as it
// is called in JSON, what it holds, and what would be right.
func (p Policy) Validate() error {
	var f fieldErrors
	f.policy("", &p)
	return errors.Join(f...)
}

// Validate checks everything that can be checked without a cluster or a clock. The error joins one for each wrong field.
func (r Request) Validate() error {
	var f fieldErrors
	if r.Node == "" {
		f.add("node", `is empty, want the name of a Node`)
	}
	if r.Last != nil && r.Last.Node != "" && r.Last.Node != r.Node {
		f.add("last", "is the status of node %q, want the one of %q", r.Last.Node, r.Node)
	}
	f.request("", &r)
	return errors.Join(f...)
}

// Validate checks everything that can be checked without a cluster or a clock. The error joins one for each wrong field.
func (s Set) Validate() error {
	var f fieldErrors
	f.request("request.", &s.Request)
	f.groups(s.Groups)
	switch s.MaxNodes.Type {
	case intstr.Int:
		if s.MaxNodes.IntVal < 0 {
			f.add("maxNodes", "is %d, want at least 0", s.MaxNodes.IntVal)
		}
	default:
		n, percent := strings.CutSuffix(s.MaxNodes.StrVal, "%")
		if v, err := strconv.Atoi(n); !percent || err != nil || v < 0 || v > 100 {
			f.add("maxNodes", `is %q, want a number, or a percent from "0%%" to "100%%"`, s.MaxNodes.StrVal)
		}
	}
	if s.NodeTimeout < 0 {
		f.add("nodeTimeout", "is %s, want a time above 0, or 0 for none", s.NodeTimeout)
	}
	return errors.Join(f...)
}

// fieldErrors collects what is wrong.
type fieldErrors []error

func (f *fieldErrors) add(field, format string, args ...any) {
	*f = append(*f, fmt.Errorf("drain: "+field+" "+format, args...))
}

// oneOf checks a word. The first of the words is the default, and the empty string stands for it.
func (f *fieldErrors) oneOf(field, got string, words ...string) {
	if got != "" && !slices.Contains(words, got) {
		f.add(field, "is %q, want %s", got, quoteWords(words))
	}
}

func quoteWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

func (f *fieldErrors) notNegative(field string, d time.Duration) {
	if d < 0 {
		f.add(field, "is %s, want at least 0s", d)
	}
}

// graceful refuses a grace period with which the server would forget a pod that may still run.
func (f *fieldErrors) graceful(field string, g *int64) {
	if g != nil && *g < 1 {
		f.add(field, "is %d, want at least 1 second, or none for the pod's own", *g)
	}
}

// name checks a name that goes into the mark.
func (f *fieldErrors) name(field, name string) {
	if len(name) > maxName {
		f.add(field, "has %d bytes, want at most %d", len(name), maxName)
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return r == utf8.RuneError || !unicode.IsGraphic(r) }); i >= 0 {
		f.add(field, "has an unprintable character at byte %d, want printable ones", i)
	}
}

func (f *fieldErrors) request(at string, r *Request) {
	if r.Holder == "" {
		f.add(at+"holder", "is empty, want a name for who asks, the same over restarts and different from every other actor")
	}
	f.name(at+"holder", r.Holder)
	if r.Maintenance == "" && (r.Mode == Drain || r.Mode == Hold) {
		f.add(at+"maintenance", "is empty, want an ID that no other maintenance of the node has: Drained is latched for it")
	}
	f.name(at+"maintenance", r.Maintenance)
	f.name(at+"run", r.Run)
	modes := []string{string(Cordon), string(Drain), string(Hold), string(Release)}
	if !slices.Contains(modes, string(r.Mode)) {
		f.add(at+"mode", "is %q, want %s", r.Mode, quoteWords(modes))
	}
	if r.Mode == Hold && r.HoldUntil.IsZero() {
		f.add(at+"holdUntil", "is not set, mode %q wants a time at most %s away", Hold, MaxHold)
	}
	f.policy(at+"policy.", &r.Policy)
}

func (f *fieldErrors) groups(groups [][]string) {
	seen := map[string]bool{}
	for i, group := range groups {
		for j, node := range group {
			field := fmt.Sprintf("groups[%d][%d]", i, j)
			switch {
			case node == "":
				f.add(field, "is empty, want the name of a Node")
			case seen[node]:
				f.add(field, "is %q, which stands in the set before, want each node once", node)
			}
			seen[node] = true
		}
	}
	if len(seen) == 0 {
		f.add("groups", "names no node, want at least 1")
	}
}

func (f *fieldErrors) policy(at string, p *Policy) {
	for i := range p.Rules {
		f.rule(fmt.Sprintf("%srules[%d]", at, i), &p.Rules[i])
	}
	f.oneOf(at+"daemonSets", string(p.DaemonSets), string(skipPods), string(LastDaemonSets))
	f.oneOf(at+"localData", string(p.LocalData), string(blockPods), string(EvictPods))
	f.oneOf(at+"unmanaged", string(p.Unmanaged), string(blockPods), string(EvictPods))
	f.oneOf(at+"tolerating", string(p.Tolerating), string(EvictPods), string(skipPods))
	f.oneOf(at+"outsideWindow", string(p.OutsideWindow), string(holdCordon), string(UndoCordon))
	f.oneOf(at+"uncordoned", string(p.Uncordoned), string(pauseOnUncordon), string(Recordon))
	if p.LocalDataLimit < 0 {
		f.add(at+"localDataLimit", "is %d, want at least 0 bytes", p.LocalDataLimit)
	}
	f.graceful(at+"gracePeriodSeconds", p.GracePeriodSeconds)
	f.notNegative(at+"tierDeadline", p.TierDeadline)
	if p.Settle != nil {
		f.notNegative(at+"settle", *p.Settle)
	}
	f.notNegative(at+"volumeDeadline", p.VolumeDeadline)
	f.notNegative(at+"soak", p.Soak)
	f.ladder(at, p.Escalation)
	for i, w := range p.Windows {
		if !w.From.IsZero() && !w.Until.IsZero() && !w.From.Before(w.Until) {
			f.add(fmt.Sprintf("%swindows[%d]", at, i), "is from %s until %s, want an end after its beginning", planTime(w.From), planTime(w.Until))
		}
	}
}

func (f *fieldErrors) rule(at string, r *Rule) {
	if i := slices.Index(r.Namespaces, ""); i >= 0 {
		f.add(fmt.Sprintf("%s.namespaces[%d]", at, i), "is empty, want the name of a namespace")
	}
	if i := slices.Index(r.OwnerKinds, ""); i >= 0 {
		f.add(fmt.Sprintf("%s.ownerKinds[%d]", at, i), `is empty, want a kind, for example "StatefulSet"`)
	}
	if _, err := metav1.LabelSelectorAsSelector(r.Selector); err != nil {
		f.add(at+".selector", "cannot be read: %w", err)
	}
	if r.MinPriority != nil && r.MaxPriority != nil && *r.MinPriority > *r.MaxPriority {
		f.add(at+".minPriority", "is %d, want at most maxPriority, %d", *r.MinPriority, *r.MaxPriority)
	}
	f.oneOf(at+".behavior", string(r.Behavior), string(BehaviorEvict), string(BehaviorSkip),
		string(BehaviorWaitCompleted), string(BehaviorHook), string(BehaviorBlock))
	if r.Tier == planDaemonTier {
		f.add(at+".tier", "is %d, which is kept for pods of DaemonSets, want at most %d", r.Tier, math.MaxInt32-1)
	}
	f.notNegative(at+".deadline", r.Deadline)
	f.hooks(at, r)
	validateMatch(f, at, &r.PodMatch)
}

// validateMatch checks what a rule knows pods by.
func validateMatch(f *fieldErrors, at string, m *PodMatch) {
	for i := range m.Annotations {
		a := &m.Annotations[i]
		field := fmt.Sprintf("%s.annotations[%d]", at, i)
		if problems := validation.IsQualifiedName(strings.ToLower(a.Key)); len(problems) > 0 {
			f.add(field+".key", `is %q, want the key of an annotation, for example "example.com/keep"`, a.Key)
		}
		if a.OrDuration && a.NamesLocalVolumes {
			f.add(field+".namesLocalVolumes", "is set beside orDuration, want one of them")
		}
	}
	if _, err := metav1.LabelSelectorAsSelector(m.NamespaceSelector); err != nil {
		f.add(at+".namespaceSelector", "cannot be read: %w", err)
	}
	for i, name := range m.Resources {
		if problems := validation.IsQualifiedName(name); len(problems) > 0 || !isExtendedResource(name) {
			f.add(fmt.Sprintf("%s.resources[%d]", at, i), `is %q, want an extended resource, for example "nvidia.com/gpu"`, name)
		}
	}
	for i, kind := range m.Volumes {
		kinds := []string{volumeEmptyDir, volumeHostPath, volumeClaim, volumeLocal}
		if field := fmt.Sprintf("%s.volumes[%d]", at, i); !slices.Contains(kinds, kind) {
			f.add(field, "is %q, want %s", kind, quoteWords(kinds))
		}
	}
	if i := slices.Index(m.PriorityClasses, ""); i >= 0 {
		f.add(fmt.Sprintf("%s.priorityClasses[%d]", at, i), "is empty, want the name of a PriorityClass")
	}
	if i := slices.Index(m.StorageClasses, ""); i >= 0 {
		f.add(fmt.Sprintf("%s.storageClasses[%d]", at, i), "is empty, want the name of a StorageClass")
	}
}

// isExtendedResource reports whether a resource is one that Kubernetes itself does not know.
func isExtendedResource(name string) bool {
	domain, _, ok := strings.Cut(name, "/")
	return ok && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

func (f *fieldErrors) hooks(at string, r *Rule) {
	if r.Behavior == BehaviorHook && len(r.Hooks) == 0 {
		f.add(at+".hooks", "is empty, behavior %q wants the name of at least 1 responder", BehaviorHook)
	}
	if len(r.Hooks) > 0 && r.Behavior != "" && r.Behavior != BehaviorHook {
		f.add(at+".hooks", "has %d names, which behavior %q never asks, want none or behavior %q", len(r.Hooks), r.Behavior, BehaviorHook)
	}
	for i, h := range r.Hooks {
		field := fmt.Sprintf("%s.hooks[%d]", at, i)
		switch {
		case h == "" || strings.ContainsAny(h, ", \t\n"):
			f.add(field, "is %q, want the name of a responder without commas and spaces", h)
		case slices.Index(r.Hooks, h) < i:
			f.add(field, "is %q, which stands in the list before, want each responder once", h)
		}
	}
}

func (f *fieldErrors) ladder(at string, steps []Escalation) {
	for i, e := range steps {
		field := fmt.Sprintf("%sescalation[%d]", at, i)
		if e.Step != StepDelete && e.Step != StepOutOfService {
			f.add(field+".step", "is %q, want %q or %q; %q comes first without being named", e.Step, StepDelete, StepOutOfService, StepEvict)
		}
		if e.After <= 0 {
			f.add(field+".after", "is %s, want more than 0s", e.After)
		}
		if i > 0 && e.After <= steps[i-1].After {
			f.add(field+".after", "is %s, want more than the %s of the step before", e.After, steps[i-1].After)
		}
		if i > 0 && e.Step == StepDelete && steps[i-1].Step == StepOutOfService {
			f.add(field+".step", "is %q after %q, want the mild steps first", e.Step, steps[i-1].Step)
		}
		f.graceful(field+".gracePeriodSeconds", e.GracePeriodSeconds)
		if e.GracePeriodSeconds != nil && e.Step == StepOutOfService {
			f.add(field+".gracePeriodSeconds", "is %d, want none: only step %q has one", *e.GracePeriodSeconds, StepDelete)
		}
	}
}
