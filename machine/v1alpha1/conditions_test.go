// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// said are the conditions in short: "True Ready", or "False Draining: 2 pods are left".
func said(conditions []metav1.Condition) map[string]string {
	all := map[string]string{}
	for _, c := range conditions {
		all[c.Type] = string(c.Status) + " " + c.Reason
		if c.Message != "" {
			all[c.Type] += ": " + c.Message
		}
	}
	return all
}

// resting is what a machine says that runs, and of which nothing else is wanted.
func resting() map[string]string {
	return map[string]string{
		"Ready": "True Ready", "InstanceRunning": "True Running", "NodeReady": "True NodeReady", "UpToDate": "True UpToDate", "UpdateSupported": "True Supported",
		"Progressing": "False Ready", "Paused": "False NotPaused", "Healthy": "True Healthy", "Valid": "True Valid",
	}
}

// running is such a machine.
func running() machine.Machine {
	m := machine.Machine{Status: machine.Status{
		Phase: machine.PhaseRunning, Step: machine.Step{Name: machine.StepReady}, Instance: &provider.Instance{State: provider.Running},
		Node: &machine.NodeRef{Name: "n", UID: "u"}, Observed: 7,
	}}
	m.Digest = m.Spec.Digest()
	return m
}

// A conditionRow is a machine with a Node, and in what its conditions differ from those of one at rest.
type conditionRow struct {
	name   string
	change func(m *machine.Machine)
	node   *machine.Node
	want   map[string]string
}

func ready() *machine.Node { return &machine.Node{NodeRef: machine.NodeRef{Name: "n"}, Ready: true} }

// conditionRows are machines that run.
func conditionRows() []conditionRow {
	return []conditionRow{
		{"at rest", func(*machine.Machine) {}, ready(), nil},
		{"at rest, by the status alone", func(*machine.Machine) {}, nil, nil},
		{"workload API down", func(m *machine.Machine) { m.Step.Blocker = "no answer" }, nil, map[string]string{
			"Ready": "Unknown NotKnown: no answer", "NodeReady": "Unknown NotKnown: no answer", "Progressing": "False Ready: no answer",
		}},
		{"paused, by the status alone", func(m *machine.Machine) { m.Spec.Paused, m.Step.Blocker = true, "paused" }, nil, map[string]string{
			"NodeReady": "Unknown NotKnown: paused", "Progressing": "False Ready: paused",
			"Paused": "True Paused: nothing is changed, and nothing is deleted, as long as spec.paused is true",
		}},
		{"node not ready", func(m *machine.Machine) { m.Step.Blocker = "the Node is not ready" }, &machine.Node{NodeRef: machine.NodeRef{Name: "n"}},
			map[string]string{
				"Ready": "False NodeNotReady: the Node is not ready", "NodeReady": `False NodeNotReady: Node "n" is not ready`,
				"Progressing": "False Ready: the Node is not ready",
			}},
		{"paused", func(m *machine.Machine) { m.Spec.Paused = true }, ready(), map[string]string{
			"Paused": "True Paused: nothing is changed, and nothing is deleted, as long as spec.paused is true",
		}},
		// R-MA-06: what is not supported is said, and the machine goes on.
		{"unsupported", func(m *machine.Machine) {
			m.Failure = &machine.Failure{Reason: machine.ReasonUnsupportedChange, Message: "no other zone"}
		}, ready(), map[string]string{
			"UpdateSupported": "False UnsupportedChange: no other zone", "UpToDate": "False UnsupportedChange: no other zone",
			"Healthy": "False UnsupportedChange: no other zone", "Progressing": "False Ready: no other zone",
		}},
		{"planned as unsupported", func(m *machine.Machine) {
			m.Update = &machine.Update{Plan: provider.Plan{Method: provider.Unsupported, Reason: "no other zone"}}
		}, ready(), map[string]string{"UpdateSupported": "False UnsupportedChange: no other zone", "UpToDate": "False Unsupported: no other zone"}},
		{"refused by the provider", func(m *machine.Machine) {
			m.Spec.Config, m.Step = []byte("{}"), machine.Step{Name: machine.StepPlanned, Blocker: "no such image"}
			m.Failure = &machine.Failure{Reason: "InvalidConfig", Message: "no such image"}
		}, ready(), map[string]string{
			"Ready": "True Planned", "UpToDate": "False InvalidConfig: no such image", "Healthy": "False InvalidConfig: no such image",
			"Progressing": "False Planned: no such image", "Valid": "False InvalidConfig: no such image",
		}},
		{"waits for approval", func(m *machine.Machine) {
			m.Step = machine.Step{Name: machine.StepPlanned, Blocker: "approve abc"}
			m.Update = &machine.Update{Plan: provider.Plan{Method: provider.Replace, Reason: "another zone"}}
		}, ready(), map[string]string{
			"Ready": "True Planned", "UpToDate": "False Replace: another zone", "Progressing": "False Planned: approve abc",
		}},
		{"provider down", func(m *machine.Machine) { m.Failure = &machine.Failure{Reason: "Unavailable", Message: "no route"} }, ready(),
			map[string]string{"Healthy": "False Unavailable: no route", "Progressing": "False Ready: no route"}},
	}
}

// otherRows are machines that do not.
func otherRows() []conditionRow {
	return []conditionRow{
		{"updating", func(m *machine.Machine) {
			m.Phase, m.Step = machine.PhaseUpdating, machine.Step{Name: machine.StepUpdating}
			m.Update = &machine.Update{Plan: provider.Plan{Method: provider.InPlace}}
		}, ready(), map[string]string{"Ready": "False Updating", "UpToDate": "False InPlace", "Progressing": "True Updating"}},
		{"draining", func(m *machine.Machine) {
			m.Phase, m.Step = machine.PhaseDeleting, machine.Step{Name: machine.StepDraining, Blocker: "2 pods are left"}
		}, ready(), map[string]string{"Ready": "False Deleting: 2 pods are left", "Progressing": "False Draining: 2 pods are left"}},
		// One definition of pause: it shows on what is being deleted too.
		{"paused in its end", func(m *machine.Machine) {
			m.Phase, m.Step, m.Spec.Paused = machine.PhaseDeleting, machine.Step{Name: machine.StepDraining}, true
		}, ready(), map[string]string{
			"Ready": "False Deleting", "Progressing": "False Draining",
			"Paused": "True Paused: nothing is changed, and nothing is deleted, as long as spec.paused is true",
		}},
		{"retired", func(m *machine.Machine) {
			m.Phase, m.Step, m.Instance, m.Node = machine.PhaseRetired, machine.Step{Name: machine.StepGone}, nil, nil
		}, nil, map[string]string{
			"Ready": "False Retired", "InstanceRunning": "False NoInstance", "NodeReady": "False NoNode", "UpToDate": "False NoInstance", "Progressing": "False Gone",
		}},
		{"broken", func(m *machine.Machine) {
			m.Phase, m.Step, m.Node = machine.PhaseFailed, machine.Step{Name: machine.StepCreating}, nil
			m.Instance = &provider.Instance{State: provider.Broken, Message: "no boot device"}
			m.Failure = &machine.Failure{Reason: machine.ReasonInstanceBroken, Message: "it is broken"}
		}, nil, map[string]string{
			"Ready": "False Failed: it is broken", "InstanceRunning": "False Broken: no boot device", "NodeReady": "False NoNode",
			"Progressing": "False Creating: it is broken", "Healthy": "False InstanceBroken: it is broken",
		}},
		{"reason that is no word", func(m *machine.Machine) { m.Failure = &machine.Failure{Reason: "out of range!", Message: "x"} }, ready(),
			map[string]string{"Healthy": "False Failed: x", "Progressing": "False Ready: x"}},
		{"nothing known", func(m *machine.Machine) { m.Status = machine.Status{Observed: 7} }, nil, map[string]string{
			"Ready": "False Pending", "InstanceRunning": "False NoInstance", "NodeReady": "False NoNode", "UpToDate": "False NoInstance", "Progressing": "True Pending",
		}},
	}
}

// R-MA-16: conditions say what the flat fields say, with the generation that they speak of.
func TestConditions(t *testing.T) {
	for _, c := range append(conditionRows(), otherRows()...) {
		t.Run(c.name, func(t *testing.T) {
			in := running()
			c.change(&in)
			want := resting()
			for kind, text := range c.want {
				want[kind] = text
			}
			m := &v1alpha1.Machine{}
			m.SetStatus(in, c.node, now())
			if diff := cmp.Diff(want, said(m.Status.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			for _, got := range m.Status.Conditions {
				if got.ObservedGeneration != 7 {
					t.Errorf("condition %s is about generation %d, want 7", got.Type, got.ObservedGeneration)
				}
			}
		})
	}
}

// The time of a condition is when its status changed, and the same status written again is the same.
func TestConditionTimes(t *testing.T) {
	m := &v1alpha1.Machine{}
	m.SetStatus(running(), ready(), now())
	before, shared := m.DeepCopy(), *m
	later := now().Add(time.Hour + 5*time.Nanosecond)
	m.SetStatus(running(), ready(), later)
	if !reflect.DeepEqual(m, before) {
		t.Errorf("the same status came out as another one: %s", cmp.Diff(before, m))
	}
	c := running()
	c.Spec.Paused, c.Step.Name = true, machine.StepPlanned
	m.SetStatus(c, ready(), later)
	for kind, want := range map[string]time.Time{"Paused": later.Truncate(time.Second), "Ready": now(), "Healthy": now()} {
		if got := meta.FindStatusCondition(m.Status.Conditions, kind).LastTransitionTime.Time; !got.Equal(want) {
			t.Errorf("%s changed at %v, want %v", kind, got, want)
		}
	}
	if !reflect.DeepEqual(&shared, before) {
		t.Errorf("the old status has changed with the new one: %s", cmp.Diff(before, &shared))
	}
}

// A spec that can't be understood shows, and what is known of the machine stays.
func TestInvalidShows(t *testing.T) {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Generation: 9}}
	m.SetStatus(running(), ready(), now())
	m.SetInvalid(errors.New("spec.nodeMetadata: no"), now())
	want := resting()
	want["Valid"] = "False Invalid: spec.nodeMetadata: no"
	if diff := cmp.Diff(want, said(m.Status.Conditions)); diff != "" || m.Status.Phase != "Running" {
		t.Errorf("phase %s, conditions (-want +got):\n%s", m.Status.Phase, diff)
	}
	if got := meta.FindStatusCondition(m.Status.Conditions, "Valid").ObservedGeneration; got != 9 {
		t.Errorf("Valid is about generation %d, want 9", got)
	}
	m.SetStatus(running(), ready(), now())
	if diff := cmp.Diff(resting(), said(m.Status.Conditions)); diff != "" {
		t.Errorf("after a status, conditions (-want +got):\n%s", diff)
	}
}
