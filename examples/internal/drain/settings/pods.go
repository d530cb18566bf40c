// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
)

// Pods says how pods are treated: what flags say goes before what the policy file says.
type Pods struct {
	File             string
	IgnoreDaemonSets bool
	DeleteLocalData  bool
	Force            bool
	GracePeriod      int64
	PodSelector      string
	Escalate         []string
	Settle           time.Duration
	// Honor names the annotations of other projects that are read, see drain.PresetRules.
	Honor []string
	// DisableEviction deletes pods in place of evicting them. No budget is asked.
	DisableEviction bool
	// SkipDeleted leaves out pods that should have ended this many seconds ago; 0 leaves out none.
	SkipDeleted int

	flags *pflag.FlagSet
}

// AddFlags adds the flags with their defaults.
func (s *Pods) AddFlags(f *pflag.FlagSet) {
	s.flags = f
	f.StringVar(&s.File, "policy", "", "file with a drain.Policy in YAML; the flags below go before what it says")
	f.BoolVar(&s.IgnoreDaemonSets, "ignore-daemonsets", true, "skip the pods of DaemonSets; this is always so, unless the policy evicts them last")
	f.BoolVar(&s.DeleteLocalData, "delete-emptydir-data", false, "evict pods with emptyDir volumes too, whose data is lost; without it they alone stay")
	f.BoolVar(&s.Force, "force", false, "evict pods without a controller too, which nothing creates again; without it they alone stay")
	f.Int64Var(&s.GracePeriod, "grace-period", -1, "seconds that each pod has to end; negative means the pod's own, 0 is refused")
	f.StringVar(&s.PodSelector, "pod-selector", "", "label selector of the pods that have to leave; all others stay and are not waited for")
	f.StringSliceVar(&s.Honor, "honor", nil, "annotations of pods to read: karpenter.sh/do-not-disrupt, "+
		"cluster-autoscaler.kubernetes.io/safe-to-evict, or the part after the slash; rules of the policy file go before")
	f.StringArrayVar(&s.Escalate, "escalate", nil, "STEP=AFTER[,grace=TIME]: delete=10m deletes, past every budget, "+
		"what is still there 10m after the cordon; delete=10m,grace=30s also shortens grace periods that run; "+
		"may be repeated")
	f.DurationVar(&s.Settle, "settle", 0, "how long a node is watched after its cordon before it counts as drained; "+
		"without it as long as a pod "+
		"may still be on its way to the node, at most 5s")
	f.BoolVar(&s.DisableEviction, "disable-eviction", false,
		"delete the pods in place of evicting them; no PodDisruptionBudget is asked")
	f.IntVar(&s.SkipDeleted, "skip-wait-for-delete-timeout", 0,
		"don't wait for pods that should have ended more than this many seconds ago; 0 waits")
	f.Int64("chunk-size", 500, "has no effect: pods are watched, and read in pages of 500")
	for name, want := range s.refused() {
		f.Var(&refusal{want: want}, name, "refused: "+want)
		f.Lookup(name).Hidden = true
		f.Lookup(name).NoOptDefVal = "true"
	}
}

// refused are flags of kubectl that have no counterpart, with what there is instead.
func (s *Pods) refused() map[string]string {
	return map[string]string{
		"warnings-as-errors":   "warnings of the API server change nothing that this command does",
		"match-server-version": "the requests of this command are the same for every version that is supported",
		"profile":              "there are no profiles; -v=6 logs each request with its time",
	}
}

// refusal is a flag that is never taken.
type refusal struct{ want string }

func (r *refusal) String() string   { return "" }
func (r *refusal) Type() string     { return "string" }
func (r *refusal) Set(string) error { return fmt.Errorf("not here: %s", r.want) }

func (s *Pods) validate(p *problems) {
	p.need(s.IgnoreDaemonSets, "ignore-daemonsets", s.IgnoreDaemonSets,
		"their pods would be back at once; a policy file with daemonSets: Last evicts them after all others")
	p.need(s.GracePeriod != 0, "grace-period", s.GracePeriod,
		"would kill at once, and let a replacement run beside a process that nobody has seen end; give 1 or more, or leave it out")
	p.need(s.Settle >= 0, "settle", s.Settle, "must not be negative")
	p.need(s.SkipDeleted >= 0, "skip-wait-for-delete-timeout", s.SkipDeleted,
		"must be a number of seconds of more than 0, or 0 to wait")
	p.need(!s.DisableEviction || len(s.Escalate) == 0, "disable-eviction", s.DisableEviction,
		"deletes at once, past every budget: leave --escalate out, or keep it and leave this one out")
}

// Policy reads the file and puts the flags on top.
func (s *Pods) Policy() (drain.Policy, error) {
	var p problems
	var policy drain.Policy
	s.validate(&p)
	if s.File != "" {
		var err error
		policy, err = LoadPolicy(s.File)
		p.add(err)
	}
	if s.DeleteLocalData {
		policy.LocalData = drain.EvictPods
	}
	if s.Force {
		policy.Unmanaged = drain.EvictPods
	}
	if s.GracePeriod > 0 {
		policy.GracePeriodSeconds = ptr.To(s.GracePeriod)
	}
	if s.flags.Changed("settle") {
		policy.Settle = ptr.To(s.Settle)
	}
	for _, e := range s.Escalate {
		step, err := escalation(e)
		p.add(err)
		policy.Escalation = append(policy.Escalation, step)
	}
	skip, err := skipOthers(s.PodSelector)
	p.add(err)
	policy.Rules = append(skip, policy.Rules...)
	for _, name := range s.Honor {
		rules, err := drain.PresetRules(name)
		if err != nil {
			p.add(&FlagError{Flag: "honor", Value: name,
				Want: "must be karpenter.sh/do-not-disrupt or cluster-autoscaler.kubernetes.io/safe-to-evict"})
		}
		policy.Rules = append(policy.Rules, rules...)
	}
	if len(p) == 0 {
		p.add(policy.Validate())
	}
	return policy, p.join()
}

// escalation reads STEP=AFTER[,grace=TIME].
func escalation(text string) (drain.Escalation, error) {
	wrong := func(want string) (drain.Escalation, error) {
		return drain.Escalation{}, &FlagError{Flag: "escalate", Value: text, Want: want}
	}
	step, rest, _ := strings.Cut(text, "=")
	after, option, hasGrace := strings.Cut(rest, ",")
	switch strings.ToLower(step) {
	case "delete":
	case "outofservice", "out-of-service":
		return wrong("needs proof that the machine is off, which this command has no way to get")
	default:
		return wrong("must be STEP=AFTER, such as delete=10m; the only step is delete")
	}
	d, err := time.ParseDuration(after)
	if err != nil || d <= 0 {
		return wrong("must be STEP=AFTER with a duration of more than 0, such as delete=10m")
	}
	e := drain.Escalation{After: d, Step: drain.StepDelete}
	if hasGrace {
		seconds, isGrace := strings.CutPrefix(option, "grace=")
		grace, err := time.ParseDuration(seconds)
		if !isGrace || err != nil || grace < time.Second || grace%time.Second != 0 {
			return wrong("must have grace= with whole seconds, at least 1s, after the comma, such as delete=10m,grace=30s")
		}
		e.GracePeriodSeconds = ptr.To(int64(grace / time.Second))
	}
	return e, nil
}

// skipOthers makes rules that skip every pod which selector doesn't match: one for each of its requirements, turned round, so that
// the rules of a policy file still decide about those that are left.
func skipOthers(selector string) ([]drain.Rule, error) {
	requirements, err := labels.ParseToRequirements(selector)
	if err != nil {
		return nil, &FlagError{Flag: "pod-selector", Value: selector, Want: fmt.Sprintf("must be a label selector, such as app=web: %v", err)}
	}
	var rules []drain.Rule
	for _, r := range requirements {
		opposite := map[selection.Operator]metav1.LabelSelectorOperator{
			selection.Equals: metav1.LabelSelectorOpNotIn, selection.DoubleEquals: metav1.LabelSelectorOpNotIn,
			selection.In: metav1.LabelSelectorOpNotIn, selection.NotEquals: metav1.LabelSelectorOpIn, selection.NotIn: metav1.LabelSelectorOpIn,
			selection.Exists: metav1.LabelSelectorOpDoesNotExist, selection.DoesNotExist: metav1.LabelSelectorOpExists,
		}[r.Operator()]
		if opposite == "" {
			return nil, &FlagError{Flag: "pod-selector", Value: selector, Want: fmt.Sprintf("must do without the operator %q", r.Operator())}
		}
		e := metav1.LabelSelectorRequirement{Key: r.Key(), Operator: opposite, Values: r.ValuesUnsorted()}
		slices.Sort(e.Values)
		rules = append(rules, drain.Rule{
			Name: "--pod-selector", Behavior: drain.BehaviorSkip,
			Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}},
		})
	}
	return rules, nil
}
