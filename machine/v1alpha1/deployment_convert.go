// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/machine"
)

// Core is what package machine sees of d, as [Machine.Core].
func (d *MachineDeployment) Core() (machine.Deployment, error) {
	spec, err := d.Spec.core()
	if err != nil {
		return machine.Deployment{}, fmt.Errorf("machine deployment %q: spec.%w", key(&d.ObjectMeta), err)
	}
	return machine.Deployment{
		Key: key(&d.ObjectMeta), UID: string(d.UID), Version: d.ResourceVersion, Generation: d.Generation,
		Labels: maps.Clone(d.Labels), Annotations: maps.Clone(d.Annotations),
		Created: d.CreationTimestamp.UTC(), Deleted: timeOf(d.DeletionTimestamp), Spec: spec, Status: d.Status.core(),
	}, nil
}

// SetCore makes d what c is, as [Machine.SetCore] does.
func (d *MachineDeployment) SetCore(c machine.Deployment) error {
	spec, err := d.Spec.with(c.Spec)
	if err != nil {
		return fmt.Errorf("machine deployment %q: %w", c.Key, err)
	}
	d.APIVersion, d.Kind, d.Spec = GroupVersion.String(), MachineDeploymentKind, spec
	d.Namespace, d.Name, d.UID, d.ResourceVersion, d.Generation = c.Namespace, c.Name, types.UID(c.UID), c.Version, c.Generation
	d.Labels, d.Annotations = maps.Clone(c.Labels), maps.Clone(c.Annotations)
	d.CreationTimestamp, d.DeletionTimestamp = metav1.NewTime(c.Created), timeRef(c.Deleted)
	return nil
}

// SetStatus makes the status that of c, and the conditions those of the status and of c's spec. now is the time of conditions that change.
func (d *MachineDeployment) SetStatus(c machine.Deployment, now time.Time) {
	conditions := standing{
		wanted: c.Spec.Replicas, there: c.Status.Replicas, ready: c.Status.Ready, failure: c.Status.Failure, message: c.Status.Message,
		paused: c.Spec.Paused, observed: c.Status.Observed,
	}.conditions(d.Status.Conditions, now)
	if set, s := setter(&conditions, c.Status.Observed, now), c.Status; s.Updated == s.Replicas && s.Updated >= c.Spec.Replicas {
		set(ConditionUpToDate, true, ReasonUpToDate, "")
	} else {
		set(ConditionUpToDate, false, ReasonRolling, fmt.Sprintf("%d of %d machines are of the present template", s.Updated, max(s.Replicas, c.Spec.Replicas)))
	}
	d.Status = MachineDeploymentStatus{
		ObservedGeneration: c.Status.Observed, Replicas: counted(c.Status.Replicas), Selector: d.Spec.Selector.text(),
		UpdatedReplicas: counted(c.Status.Updated), ReadyReplicas: counted(c.Status.Ready), AvailableReplicas: counted(c.Status.Available),
		Revision: c.Status.Revision, Collisions: int64(c.Status.Collisions), Progressed: second(c.Status.Progressed),
		Failure: failureOf(c.Status.Failure), Message: clip(c.Status.Message, MaxMessage), Conditions: conditions,
	}
}

// SetInvalid says that nothing can be decided on the spec, as [Machine.SetInvalid] does.
func (d *MachineDeployment) SetInvalid(err error, now time.Time) {
	d.Status.Conditions = invalid(d.Status.Conditions, d.Generation, err, now)
}

func (s *MachineDeploymentSpec) core() (machine.DeploymentSpec, error) {
	set, err := s.MachineGroup.core()
	c := machine.DeploymentSpec{
		Replicas: set.Replicas, Selector: set.Selector, Template: set.Template, Order: set.Order, MaxProvisioning: set.MaxProvisioning, MinReady: set.MinReady,
		Deadline: duration(s.ProgressDeadline), Paused: set.Paused,
	}
	switch {
	case err != nil:
		return c, err
	case len(s.Selector.MatchExpressions) > 0:
		return c, fmt.Errorf("selector has %d matchExpressions: want matchLabels only, the sets of a deployment have them too", len(s.Selector.MatchExpressions))
	}
	if n := s.HistoryLimit; n != nil {
		if c.History = int(*n); c.History <= 0 {
			c.History = -1
		}
	}
	if s.Strategy != nil {
		c.Strategy.Type = machine.StrategyType(s.Strategy.Type)
		if c.Strategy.MaxSurge, err = amount("strategy.maxSurge", s.Strategy.MaxSurge); err != nil {
			return c, err
		}
		if c.Strategy.MaxUnavailable, err = amount("strategy.maxUnavailable", s.Strategy.MaxUnavailable); err != nil {
			return c, err
		}
	}
	return c, nil
}

// with is the spec that c is.
func (s MachineDeploymentSpec) with(c machine.DeploymentSpec) (MachineDeploymentSpec, error) {
	err := s.MachineGroup.set(machine.SetSpec{
		Replicas: c.Replicas, Selector: c.Selector, Template: c.Template, Order: c.Order, MaxProvisioning: c.MaxProvisioning, MinReady: c.MinReady, Paused: c.Paused,
	})
	if err != nil {
		return s, err
	}
	s.ProgressDeadline, s.HistoryLimit, s.Strategy = durationRef(c.Deadline), nil, nil
	if c.History != 0 {
		n := counted(c.History)
		s.HistoryLimit = &n
	}
	if c.Strategy != (machine.Strategy{}) {
		s.Strategy = &Strategy{
			Type: StrategyType(c.Strategy.Type), MaxSurge: amountOf(c.Strategy.MaxSurge), MaxUnavailable: amountOf(c.Strategy.MaxUnavailable),
		}
	}
	return s, nil
}

func (s *MachineDeploymentStatus) core() machine.DeploymentStatus {
	return machine.DeploymentStatus{
		Replicas: int(s.Replicas), Updated: int(s.UpdatedReplicas), Ready: int(s.ReadyReplicas), Available: int(s.AvailableReplicas),
		Revision: s.Revision, Collisions: int(s.Collisions), Progressed: timeOf(&s.Progressed), Failure: s.Failure.core(), Message: s.Message,
		Observed: s.ObservedGeneration,
	}
}
