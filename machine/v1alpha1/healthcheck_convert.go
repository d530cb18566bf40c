// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/machine"
)

// Core is what package machine sees of h. Expressions of the selector go to its views by [MachineSelector.Matches]. Otherwise it is as [Machine.Core].
func (h *MachineHealthCheck) Core() (machine.HealthCheck, error) {
	spec, err := h.Spec.core()
	if err != nil {
		return machine.HealthCheck{}, fmt.Errorf("machine health check %q: spec.%w", key(&h.ObjectMeta), err)
	}
	return machine.HealthCheck{
		Key: key(&h.ObjectMeta), UID: string(h.UID), Version: h.ResourceVersion, Generation: h.Generation, Spec: spec, Status: h.Status.core(h.Namespace),
	}, nil
}

// SetCore makes h what c is, as [Machine.SetCore] does. Labels, annotations and expressions of the selector stay.
func (h *MachineHealthCheck) SetCore(c machine.HealthCheck) error {
	spec, err := h.Spec.with(c.Spec)
	if err != nil {
		return fmt.Errorf("machine health check %q: %w", c.Key, err)
	}
	h.APIVersion, h.Kind, h.Spec = GroupVersion.String(), MachineHealthCheckKind, spec
	h.Namespace, h.Name, h.UID, h.ResourceVersion, h.Generation = c.Namespace, c.Name, types.UID(c.UID), c.Version, c.Generation
	return nil
}

// SetStatus makes the status that of c, and the conditions those of the status and of c's spec. now is the time of conditions that change. Machines of its
// attempts are in the namespace of the check.
func (h *MachineHealthCheck) SetStatus(c machine.HealthCheck, now time.Time) {
	s := c.Status
	conditions := slices.Clone(h.Status.Conditions)
	set := setter(&conditions, s.Observed, now)
	if s.Unhealthy > 0 {
		set(ConditionHealthy, false, ReasonUnhealthy, fmt.Sprintf("%d of %d machines are unhealthy", s.Unhealthy, s.Expected))
	} else {
		set(ConditionHealthy, true, ReasonHealthy, "")
	}
	if s.Message != "" || c.Spec.Paused {
		set(ConditionRemediationAllowed, false, ReasonHeld, s.Message)
	} else {
		set(ConditionRemediationAllowed, true, ReasonAllowed, "")
	}
	set(ConditionValid, true, ReasonValid, "")
	setPaused(set, c.Spec.Paused, s.Message)
	h.Status = MachineHealthCheckStatus{
		ObservedGeneration: s.Observed, Expected: counted(s.Expected), Healthy: counted(s.Healthy), Unhealthy: counted(s.Unhealthy),
		Message: clip(s.Message, MaxMessage), Conditions: conditions,
	}
	for _, a := range s.Attempts {
		h.Status.Attempts = append(h.Status.Attempts, Attempt{
			Machine: a.Name, UID: a.UID, Remedy: Remedy(a.Kind), Rung: counted(a.Rung), Try: counted(a.Try), Since: second(a.Since),
			HealthySince: second(a.Healthy), Reason: clip(a.Reason, MaxMessage),
		})
	}
}

// SetInvalid says that nothing can be decided on the spec, as [Machine.SetInvalid] does.
func (h *MachineHealthCheck) SetInvalid(err error, now time.Time) {
	h.Status.Conditions = invalid(h.Status.Conditions, h.Generation, err, now)
}

func (s *MachineHealthCheckSpec) core() (machine.HealthSpec, error) {
	c := machine.HealthSpec{
		Selector: textsOf[string](s.Selector.MatchLabels), StartupTimeout: duration(s.StartupTimeout), Cooldown: duration(s.Cooldown),
		MaxLineage: int(s.MaxLineage), Proven: duration(s.Proven), Paused: s.Paused,
	}
	if _, err := s.Selector.selector(); err != nil {
		return c, err
	}
	for _, u := range s.Unhealthy {
		when := machine.UnhealthyWhen{Phase: machine.Phase(u.Phase), For: u.For.Duration}
		if u.Condition != nil {
			when.Condition, when.Status = u.Condition.Type, u.Condition.Status
		}
		c.Unhealthy = append(c.Unhealthy, when)
	}
	for _, r := range s.Ladder {
		c.Ladder = append(c.Ladder, machine.Rung{Kind: machine.RemedyKind(r.Remedy), Tries: int(r.Tries), Wait: duration(r.Wait)})
	}
	var err error
	c.MaxUnhealthy, err = amount("maxUnhealthy", s.MaxUnhealthy)
	return c, err
}

// with is the spec that c is, with the expressions of s.
func (s MachineHealthCheckSpec) with(c machine.HealthSpec) (MachineHealthCheckSpec, error) {
	lineage, err := count("max lineage", c.MaxLineage)
	if err != nil {
		return s, err
	}
	s = MachineHealthCheckSpec{
		Selector:       MachineSelector{MatchLabels: textsOf[LabelValue](c.Selector), MatchExpressions: s.Selector.MatchExpressions},
		StartupTimeout: durationRef(c.StartupTimeout), MaxUnhealthy: amountOf(c.MaxUnhealthy), Cooldown: durationRef(c.Cooldown),
		MaxLineage: lineage, Proven: durationRef(c.Proven), Paused: c.Paused,
	}
	for _, u := range c.Unhealthy {
		when := UnhealthyWhen{Phase: MachinePhase(u.Phase), For: metav1.Duration{Duration: u.For}}
		if u.Condition != "" || u.Status != "" {
			when.Condition = &NodeCondition{Type: u.Condition, Status: u.Status}
		}
		s.Unhealthy = append(s.Unhealthy, when)
	}
	for _, r := range c.Ladder {
		tries, err := count("tries of a rung", r.Tries)
		if err != nil {
			return s, err
		}
		s.Ladder = append(s.Ladder, Rung{Remedy: Remedy(r.Kind), Tries: tries, Wait: durationRef(r.Wait)})
	}
	return s, nil
}

func (s *MachineHealthCheckStatus) core(namespace string) machine.HealthStatus {
	c := machine.HealthStatus{
		Expected: int(s.Expected), Healthy: int(s.Healthy), Unhealthy: int(s.Unhealthy), Message: s.Message, Observed: s.ObservedGeneration,
	}
	for _, a := range s.Attempts {
		c.Attempts = append(c.Attempts, machine.Attempt{
			Key: machine.Key{Namespace: namespace, Name: a.Machine}, UID: a.UID, Kind: machine.RemedyKind(a.Remedy), Rung: int(a.Rung), Try: int(a.Try),
			Since: timeOf(&a.Since), Healthy: timeOf(&a.HealthySince), Reason: a.Reason,
		})
	}
	return c
}
