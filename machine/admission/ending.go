// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// An end is what a request would end. The zero value is nothing.
type end struct {
	keys []machine.Key
	// machine is as the API server has shown it; nil if it has not.
	machine *machine.Machine
}

// ending finds out what a request would end.
func (r Reviewer) ending(ctx context.Context, q *admissionv1.AdmissionRequest) (end, error) {
	if q.Resource.Group != v1alpha1.GroupVersion.Group {
		return end{}, nil
	}
	switch q.Resource.Resource + "/" + q.SubResource {
	case v1alpha1.MachinesResource.Resource + "/":
		return ofMachine(q)
	case v1alpha1.MachineSetsResource.Resource + "/", v1alpha1.MachineSetsResource.Resource + "/scale",
		v1alpha1.MachineDeploymentsResource.Resource + "/", v1alpha1.MachineDeploymentsResource.Resource + "/scale":
		return r.ofGroup(ctx, q)
	}
	return end{}, nil
}

// ofMachine is about one machine. The object of a request is newer than any cache.
func ofMachine(q *admissionv1.AdmissionRequest) (end, error) {
	before, err := machineIn("oldObject", q.OldObject.Raw)
	if err != nil || q.Operation == admissionv1.Create {
		return end{}, err
	}
	m := before
	if q.Operation == admissionv1.Update {
		after, err := machineIn("object", q.Object.Raw)
		if err != nil || before.Spec.Decommission || !after.Spec.Decommission {
			return end{}, err
		}
		m = after
	} else if q.Operation != admissionv1.Delete {
		return end{}, nil
	}
	if over(m) {
		return end{}, nil
	}
	return end{[]machine.Key{m.Key}, &m}, nil
}

// over reports whether there is nothing left to be judged: no instance was asked for, it is gone, or its end goes on whatever is said here.
func over(m machine.Machine) bool {
	return !m.Deleted.IsZero() || m.Token == "" && m.Spec.ProviderID == "" || m.Phase == machine.PhaseRetired || m.Release != nil && m.Release.Begun
}

func machineIn(field string, raw []byte) (machine.Machine, error) {
	if len(raw) == 0 {
		return machine.Machine{}, nil
	}
	o := &v1alpha1.Machine{}
	if err := json.Unmarshal(raw, o); err != nil {
		return machine.Machine{}, fmt.Errorf("%s: %w", field, err)
	}
	m, err := o.Core()
	if err != nil {
		return m, fmt.Errorf("%s: %w", field, err)
	}
	return m, nil
}

// ofGroup is about a set or a deployment.
func (r Reviewer) ofGroup(ctx context.Context, q *admissionv1.AdmissionRequest) (end, error) {
	replicas, less, err := shrinks(q)
	if err != nil || !less {
		return end{}, err
	}
	if r.Groups == nil {
		return end{}, errors.New("there is nobody who knows sets and deployments")
	}
	g, err := r.Groups.Read(ctx, q.Namespace, false)
	if err != nil {
		return end{}, fmt.Errorf("read the sets of %q: %w", q.Namespace, err)
	}
	machines, order, err := members(g, q)
	if err != nil {
		return end{}, err
	}
	var e end
	for _, c := range machine.ScaleIn(machines, replicas, order) {
		i := slices.IndexFunc(machines, func(m machine.Machine) bool { return m.Key == c.Key })
		if !over(machines[i]) {
			e.keys = append(e.keys, c.Key)
		}
	}
	return e, nil
}

// sized is what sets, deployments and scales have in common.
type sized struct {
	Spec struct {
		Replicas *int32 `json:"replicas"`
	} `json:"spec"`
}

// shrinks reports whether a request takes machines away, and how many replicas it leaves.
func shrinks(q *admissionv1.AdmissionRequest) (replicas int, less bool, err error) {
	switch q.Operation {
	case admissionv1.Delete:
		orphans, err := orphaned(q.Options.Raw)
		return 0, !orphans, err
	case admissionv1.Update:
	default:
		return 0, false, nil
	}
	var before, after sized
	if err := json.Unmarshal(q.OldObject.Raw, &before); err != nil {
		return 0, false, fmt.Errorf("oldObject: %w", err)
	}
	if err := json.Unmarshal(q.Object.Raw, &after); err != nil {
		return 0, false, fmt.Errorf("object: %w", err)
	}
	was, is := before.count(), after.count()
	return is, is < was, nil
}

// count is the number of replicas. A scale leaves it out where it is zero.
func (s sized) count() int {
	if s.Spec.Replicas == nil {
		return 0
	}
	return int(*s.Spec.Replicas)
}

// orphaned reports whether a deletion leaves the machines.
func orphaned(options []byte) (bool, error) {
	var o metav1.DeleteOptions
	if len(options) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(options, &o); err != nil {
		return false, fmt.Errorf("options: %w", err)
	}
	return o.PropagationPolicy != nil && *o.PropagationPolicy == metav1.DeletePropagationOrphan, nil
}

// named is what a set, a deployment and a scale of either have in common.
type named struct {
	Metadata struct {
		UID string `json:"uid"`
	} `json:"metadata"`
}

// members are the machines of a set or a deployment. Those of a deployment are judged as one set.
func members(g controller.Group, q *admissionv1.AdmissionRequest) (machines []machine.Machine, order machine.DeleteOrder, err error) {
	var o named
	if err := json.Unmarshal(q.OldObject.Raw, &o); err != nil {
		return nil, "", fmt.Errorf("oldObject: %w", err)
	}
	uid := o.Metadata.UID
	if uid == "" {
		return nil, "", errors.New("oldObject: it has no metadata.uid")
	}
	sets := map[string]bool{uid: true}
	for _, s := range g.Sets {
		if s.UID == uid || s.Owner.UID == uid {
			sets[s.UID], order = true, s.Spec.Order
		}
	}
	for _, m := range g.Machines {
		if sets[m.Owner.UID] {
			machines = append(machines, m)
		}
	}
	return machines, order, nil
}
