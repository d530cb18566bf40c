// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/machine"
)

// Matches returns what tells whether labels are selected, for the views of package machine. An empty selector selects nothing.
func (s *MachineSelector) Matches() (func(map[string]string) bool, error) {
	selector, err := s.selector()
	if err != nil {
		return nil, err
	}
	return func(l map[string]string) bool { return !selector.Empty() && selector.Matches(labels.Set(l)) }, nil
}

func (s *MachineSelector) selector() (labels.Selector, error) {
	l := &metav1.LabelSelector{MatchLabels: textsOf[string](s.MatchLabels)}
	for _, e := range s.MatchExpressions {
		values := make([]string, len(e.Values))
		for i, v := range e.Values {
			values[i] = string(v)
		}
		l.MatchExpressions = append(l.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: values,
		})
	}
	selector, err := metav1.LabelSelectorAsSelector(l)
	if err != nil {
		return nil, fmt.Errorf("selector: %w", err)
	}
	return selector, nil
}

// text is the selector as the scale subresource shows it; empty for one that can't be understood.
func (s *MachineSelector) text() string {
	selector, err := s.selector()
	if err != nil {
		return ""
	}
	return selector.String()
}

// core is a set's part of a spec; a deployment has the same.
func (g *MachineGroup) core() (machine.SetSpec, error) {
	c := machine.SetSpec{
		Replicas: int(g.Replicas), Selector: textsOf[string](g.Selector.MatchLabels), Order: machine.DeleteOrder(g.DeleteOrder),
		MaxProvisioning: int(g.MaxProvisioning), MinReady: duration(g.MinReady), Paused: g.Paused,
	}
	if _, err := g.Selector.selector(); err != nil {
		return c, err
	}
	var err error
	if c.Template, err = g.Template.core(); err != nil {
		return c, fmt.Errorf("template.%w", err)
	}
	return c, nil
}

// set makes the group what c is, but for the expressions of the selector, of which package machine knows nothing.
func (g *MachineGroup) set(c machine.SetSpec) error {
	template, err := templateOf(c.Template)
	if err != nil {
		return err
	}
	replicas, err := count("replicas", c.Replicas)
	if err != nil {
		return err
	}
	provisioning, err := count("max provisioning", c.MaxProvisioning)
	if err != nil {
		return err
	}
	*g = MachineGroup{
		Replicas: replicas, Selector: MachineSelector{MatchLabels: textsOf[LabelValue](c.Selector), MatchExpressions: g.Selector.MatchExpressions},
		Template: template, DeleteOrder: DeleteOrder(c.Order), MaxProvisioning: provisioning, MinReady: durationRef(c.MinReady), Paused: c.Paused,
	}
	return nil
}

func (t *MachineTemplate) core() (machine.Template, error) {
	c := machine.Template{Labels: textsOf[string](t.Metadata.Labels), Annotations: maps.Clone(t.Metadata.Annotations)}
	if err := checkNames("metadata", c.Labels, c.Annotations); err != nil {
		return c, err
	}
	var err error
	if c.Spec, err = t.Spec.core(); err != nil {
		return c, fmt.Errorf("spec.%w", err)
	}
	return c, nil
}

func templateOf(c machine.Template) (MachineTemplate, error) {
	if s := c.Spec; s.ProviderID != "" || s.Adopt != "" || s.Decommission || s.Paused {
		return MachineTemplate{}, fmt.Errorf("template: ProviderID %q, Adopt %q, Decommission %t, Paused %t: want none of them, they belong to one machine alone",
			s.ProviderID, s.Adopt, s.Decommission, s.Paused)
	}
	config, err := configOf(c.Spec)
	if err != nil {
		return MachineTemplate{}, fmt.Errorf("template: %w", err)
	}
	return MachineTemplate{Metadata: TemplateMetadata{Labels: textsOf[LabelValue](c.Labels), Annotations: maps.Clone(c.Annotations)}, Spec: config}, nil
}

// count makes a number one of the API, in which none is below 0.
func count(what string, n int) (int32, error) {
	if n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%s is %d: want 0 to %d", what, n, math.MaxInt32)
	}
	return int32(n), nil
}

// counted is a number that was counted.
func counted(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

func amount(field string, v *intstr.IntOrString) (machine.Amount, error) {
	if v == nil {
		return machine.Amount{}, nil
	}
	a, err := machine.ParseAmount(v.String())
	if err != nil {
		return a, fmt.Errorf("%s: %w", field, err)
	}
	return a, nil
}

func amountOf(a machine.Amount) *intstr.IntOrString {
	if a == (machine.Amount{}) {
		return nil
	}
	v := intstr.Parse(a.String())
	return &v
}

func (f *Failure) core() *machine.Failure {
	if f == nil {
		return nil
	}
	return &machine.Failure{Reason: f.Reason, Message: f.Message, Since: timeOf(&f.Since)}
}

func failureOf(c *machine.Failure) *Failure {
	if c == nil {
		return nil
	}
	return &Failure{Reason: c.Reason, Message: clip(c.Message, MaxMessage), Since: second(c.Since)}
}

// A standing is what conditions of sets and deployments are made of.
type standing struct {
	wanted, there, ready int
	failure              *machine.Failure
	message              string
	paused               bool
	observed             int64
}

// conditions are those of a set, and with some more those of a deployment, whose times change with their status alone.
func (s standing) conditions(old []metav1.Condition, now time.Time) []metav1.Condition {
	all := slices.Clone(old)
	set := setter(&all, s.observed, now)
	if s.there == s.wanted && s.ready >= s.wanted {
		set(ConditionReady, true, ReasonAllReady, "")
	} else {
		set(ConditionReady, false, ReasonNotReady, fmt.Sprintf("%d of %d machines are there, %d of them ready", s.there, s.wanted, s.ready))
	}
	setHealthy(set, s.failure)
	setPaused(set, s.paused, s.message)
	set(ConditionValid, true, ReasonValid, "")
	return all
}
