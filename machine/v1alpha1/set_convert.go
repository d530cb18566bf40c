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

// Core is what package machine sees of s. Expressions of the selector are no part of it: they go to its views by [MachineSelector.Matches]. Otherwise it is
// as [Machine.Core].
func (s *MachineSet) Core() (machine.Set, error) {
	spec, err := s.Spec.core()
	if err != nil {
		return machine.Set{}, fmt.Errorf("machine set %q: spec.%w", key(&s.ObjectMeta), err)
	}
	return machine.Set{
		Key: key(&s.ObjectMeta), UID: string(s.UID), Version: s.ResourceVersion, Generation: s.Generation,
		Labels: maps.Clone(s.Labels), Annotations: maps.Clone(s.Annotations),
		Created: s.CreationTimestamp.UTC(), Deleted: timeOf(s.DeletionTimestamp), Owner: ownerOf(&s.ObjectMeta), Spec: spec, Status: s.Status.core(),
	}, nil
}

// SetCore makes s what c is, as [Machine.SetCore] does. Expressions of the selector stay.
func (s *MachineSet) SetCore(c machine.Set) error {
	group := s.Spec.MachineGroup
	if err := group.set(c.Spec); err != nil {
		return fmt.Errorf("machine set %q: %w", c.Key, err)
	}
	s.APIVersion, s.Kind, s.Spec.MachineGroup = GroupVersion.String(), MachineSetKind, group
	s.Namespace, s.Name, s.UID, s.ResourceVersion, s.Generation = c.Namespace, c.Name, types.UID(c.UID), c.Version, c.Generation
	s.Labels, s.Annotations = maps.Clone(c.Labels), maps.Clone(c.Annotations)
	s.CreationTimestamp, s.DeletionTimestamp = metav1.NewTime(c.Created), timeRef(c.Deleted)
	setOwner(&s.ObjectMeta, c.Owner, MachineDeploymentKind)
	return nil
}

// SetStatus makes the status that of c, and the conditions those of the status and of c's spec. now is the time of conditions that change.
func (s *MachineSet) SetStatus(c machine.Set, now time.Time) {
	conditions := standing{
		wanted: c.Spec.Replicas, there: c.Status.Replicas, ready: c.Status.Ready, failure: c.Status.Failure, message: c.Status.Message,
		paused: c.Spec.Paused, observed: c.Status.Observed,
	}.conditions(s.Status.Conditions, now)
	s.Status = MachineSetStatus{
		ObservedGeneration: c.Status.Observed, Replicas: counted(c.Status.Replicas), Selector: s.Spec.Selector.text(),
		LabeledReplicas: counted(c.Status.Labeled), ReadyReplicas: counted(c.Status.Ready), AvailableReplicas: counted(c.Status.Available),
		Serial: c.Status.Serial, Failure: failureOf(c.Status.Failure), Message: clip(c.Status.Message, MaxMessage), Conditions: conditions,
	}
	for _, r := range c.Status.Reserved {
		one := Reservation{Name: r.Name}
		if r.Heir != (machine.Heir{}) {
			one.Heir = &Heir{Of: r.Heir.Of, Lineage: int64(r.Heir.Lineage)}
		}
		s.Status.Reserved = append(s.Status.Reserved, one)
	}
	for _, h := range c.Status.Heirs {
		s.Status.Heirs = append(s.Status.Heirs, Heir{Of: h.Of, Lineage: int64(h.Lineage)})
	}
}

// SetInvalid says that nothing can be decided on the spec, as [Machine.SetInvalid] does.
func (s *MachineSet) SetInvalid(err error, now time.Time) {
	s.Status.Conditions = invalid(s.Status.Conditions, s.Generation, err, now)
}

func (s *MachineSetStatus) core() machine.SetStatus {
	c := machine.SetStatus{
		Replicas: int(s.Replicas), Labeled: int(s.LabeledReplicas), Ready: int(s.ReadyReplicas), Available: int(s.AvailableReplicas),
		Serial: s.Serial, Failure: s.Failure.core(), Message: s.Message, Observed: s.ObservedGeneration,
	}
	for _, r := range s.Reserved {
		one := machine.Reservation{Name: r.Name}
		if r.Heir != nil {
			one.Heir = machine.Heir{Of: r.Heir.Of, Lineage: int(r.Heir.Lineage)}
		}
		c.Reserved = append(c.Reserved, one)
	}
	for _, h := range s.Heirs {
		c.Heirs = append(c.Heirs, machine.Heir{Of: h.Of, Lineage: int(h.Lineage)})
	}
	return c
}
