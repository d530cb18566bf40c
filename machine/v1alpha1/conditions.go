// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// The types of conditions. A Machine has all but RemediationAllowed, a MachineSet Ready, Healthy, Paused and Valid, a MachineDeployment UpToDate too, and a
// MachineHealthCheck RemediationAllowed, Healthy, Paused and Valid. They are there from the first status on.
const (
	// ConditionReady: the machine takes work: it is running, and its Node is ready. A change that waits leaves it True, as does a pause. Of a set or a
	// deployment: there are as many machines as are wanted, and all are ready.
	ConditionReady = "Ready"
	// ConditionInstanceRunning: the provider has said so.
	ConditionInstanceRunning = "InstanceRunning"
	// ConditionNodeReady: the Node of the present instance is ready. False without one, Unknown if the status does not say, as in an update.
	ConditionNodeReady = "NodeReady"
	// ConditionUpToDate: the instance is what the spec says. Of a deployment: all of its machines are of the present template.
	ConditionUpToDate = "UpToDate"
	// ConditionUpdateSupported: False with the reason UnsupportedChange if the provider, or the update policy, has no way to what the spec says. Nothing
	// was touched then.
	ConditionUpdateSupported = "UpdateSupported"
	// ConditionProgressing: something is under way and goes on by itself. False at rest, and if something is in the way, which the message says.
	ConditionProgressing = "Progressing"
	// ConditionPaused: spec.paused, also of what is being deleted.
	ConditionPaused = "Paused"
	// ConditionHealthy: nothing has failed. The reason of False is that of the failure.
	ConditionHealthy = "Healthy"
	// ConditionRemediationAllowed: nothing keeps a health check from a remedy.
	ConditionRemediationAllowed = "RemediationAllowed"
	// ConditionValid: the spec can be understood. False with [ReasonInvalid]; then the others are as they were, of the generation that they name. Of a machine it
	// is False too, with the reason InvalidConfig, while the provider refuses the config.
	ConditionValid = "Valid"
)

// The reasons of conditions, besides steps, phases and the reasons of failures.
const (
	// ReasonValid comes with Valid, True, and ReasonInvalid with False.
	ReasonValid   = "Valid"
	ReasonInvalid = "Invalid"
	// ReasonNoNode comes with NodeReady, False.
	ReasonNoNode = "NoNode"
	// ReasonNodeReady comes with NodeReady, True, and ReasonNodeNotReady with False.
	ReasonNodeReady    = "NodeReady"
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonNotKnown comes with Ready and NodeReady, Unknown.
	ReasonNotKnown = "NotKnown"
	// ReasonNoInstance comes with InstanceRunning, False, if there is none.
	ReasonNoInstance = "NoInstance"
	// ReasonUpToDate comes with UpToDate, True.
	ReasonUpToDate = "UpToDate"
	// ReasonSupported comes with UpdateSupported, True.
	ReasonSupported = "Supported"
	// ReasonPaused comes with Paused, True, and ReasonNotPaused with False.
	ReasonPaused    = "Paused"
	ReasonNotPaused = "NotPaused"
	// ReasonHealthy comes with Healthy, True.
	ReasonHealthy = "Healthy"
	// ReasonUnhealthy comes with Healthy of a health check, False.
	ReasonUnhealthy = "Unhealthy"
	// ReasonAllReady comes with Ready of a set or a deployment, True, and ReasonNotReady with False.
	ReasonAllReady = "AllReady"
	ReasonNotReady = "NotReady"
	// ReasonRolling comes with UpToDate of a deployment, False.
	ReasonRolling = "Rolling"
	// ReasonAllowed comes with RemediationAllowed, True, and ReasonHeld with False.
	ReasonAllowed = "Allowed"
	ReasonHeld    = "Held"
	// ReasonFailed stands for a failure whose reason is not one word.
	ReasonFailed = "Failed"
)

// SetInvalid says that nothing can be decided on the spec, and leaves the rest of the status as it is. The error is that of [Machine.Core].
func (m *Machine) SetInvalid(err error, now time.Time) {
	m.Status.Conditions = invalid(m.Status.Conditions, m.Generation, err, now)
}

func invalid(old []metav1.Condition, generation int64, err error, now time.Time) []metav1.Condition {
	if err == nil {
		err = errors.New("the reason is not known")
	}
	all := slices.Clone(old)
	setter(&all, generation, now)(ConditionValid, false, ReasonInvalid, err.Error())
	return all
}

// setConditions makes the conditions those of the rest of the status.
func (s *MachineStatus) setConditions(c machine.Machine, node *machine.Node, now time.Time) {
	set := setter(&s.Conditions, c.Observed, now)
	step := word(string(c.Step.Name), string(machine.StepPending))
	failure := ""
	if c.Failure != nil {
		failure = c.Failure.Message
	}
	s.setReady(c, node, now)
	if i := c.Instance; i == nil {
		set(ConditionInstanceRunning, false, ReasonNoInstance, "")
	} else {
		set(ConditionInstanceRunning, i.State == provider.Running, word(string(i.State), string(provider.Pending)), i.Message)
	}
	s.setNodeReady(c, node, now)
	s.setUpdate(c, now)
	resting := c.Phase == machine.PhaseRetired || c.Phase == machine.PhaseRunning && c.Step.Name == machine.StepReady
	stuck := c.Spec.Paused || c.Phase == machine.PhaseFailed || c.Step.Blocker != ""
	set(ConditionProgressing, !resting && !stuck, step, first(c.Step.Blocker, failure))
	setPaused(set, c.Spec.Paused, "nothing is changed, and nothing is deleted, as long as spec.paused is true")
	setHealthy(set, c.Failure)
	if f := c.Failure; f != nil && f.Reason == string(provider.InvalidConfig) {
		set(ConditionValid, false, f.Reason, f.Message)
	} else {
		set(ConditionValid, true, ReasonValid, "")
	}
}

// A set sets one condition.
type set func(kind string, yes bool, reason, message string)

func setPaused(set set, paused bool, message string) {
	if paused {
		set(ConditionPaused, true, ReasonPaused, message)
	} else {
		set(ConditionPaused, false, ReasonNotPaused, "")
	}
}

func setHealthy(set set, failure *machine.Failure) {
	if failure != nil {
		set(ConditionHealthy, false, word(failure.Reason, ReasonFailed), failure.Message)
	} else {
		set(ConditionHealthy, true, ReasonHealthy, "")
	}
}

func (s *MachineStatus) setReady(c machine.Machine, node *machine.Node, now time.Time) {
	status, reason, message := metav1.ConditionTrue, word(string(c.Step.Name), string(machine.StepPending)), ""
	switch running := c.Phase == machine.PhaseRunning; {
	case running && node != nil && !node.Ready:
		status, reason, message = metav1.ConditionFalse, ReasonNodeNotReady, c.Step.Blocker
	case running && node == nil && c.Step.Name == machine.StepReady && c.Step.Blocker != "" && !c.Spec.Paused:
		status, reason, message = metav1.ConditionUnknown, ReasonNotKnown, c.Step.Blocker
	case running:
	default:
		status, reason = metav1.ConditionFalse, word(string(c.Phase), string(machine.PhasePending))
		if message = c.Step.Blocker; c.Failure != nil {
			message = c.Failure.Message
		}
	}
	setCondition(&s.Conditions, metav1.Condition{Type: ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: c.Observed}, now)
}

func (s *MachineStatus) setNodeReady(c machine.Machine, node *machine.Node, now time.Time) {
	status, reason, message := metav1.ConditionFalse, ReasonNoNode, ""
	switch {
	case c.Node == nil:
	case node != nil && !node.Ready:
		reason, message = ReasonNodeNotReady, fmt.Sprintf("Node %q is not ready", node.Name)
	case node != nil || c.Phase == machine.PhaseRunning && c.Step.Name == machine.StepReady && c.Step.Blocker == "":
		status, reason = metav1.ConditionTrue, ReasonNodeReady
	default:
		status, reason, message = metav1.ConditionUnknown, ReasonNotKnown, c.Step.Blocker
	}
	setCondition(&s.Conditions, metav1.Condition{Type: ConditionNodeReady, Status: status, Reason: reason, Message: message, ObservedGeneration: c.Observed}, now)
}

func (s *MachineStatus) setUpdate(c machine.Machine, now time.Time) {
	set := setter(&s.Conditions, c.Observed, now)
	u := c.Update
	failed := c.Failure != nil && c.Failure.Reason == machine.ReasonUnsupportedChange
	switch {
	case failed:
		set(ConditionUpdateSupported, false, machine.ReasonUnsupportedChange, c.Failure.Message)
	case u != nil && u.Plan.Method == provider.Unsupported:
		set(ConditionUpdateSupported, false, machine.ReasonUnsupportedChange, u.Plan.Reason)
	default:
		set(ConditionUpdateSupported, true, ReasonSupported, "")
	}
	switch {
	case failed:
		set(ConditionUpToDate, false, machine.ReasonUnsupportedChange, c.Failure.Message)
	case u != nil:
		set(ConditionUpToDate, false, word(string(u.Plan.Method), string(machine.StepPlanned)), u.Plan.Reason)
	case c.Instance == nil:
		set(ConditionUpToDate, false, ReasonNoInstance, "")
	case c.Digest != c.Spec.Digest(): // there is no plan yet, as while the provider refuses the change
		reason, why := string(machine.StepPlanned), c.Step.Blocker
		if c.Failure != nil {
			reason, why = word(c.Failure.Reason, ReasonFailed), c.Failure.Message
		}
		set(ConditionUpToDate, false, reason, why)
	default:
		set(ConditionUpToDate, true, ReasonUpToDate, "")
	}
}

// setter sets conditions, whose times change with their status alone.
func setter(all *[]metav1.Condition, generation int64, now time.Time) set {
	return func(kind string, yes bool, reason, message string) {
		status := metav1.ConditionFalse
		if yes {
			status = metav1.ConditionTrue
		}
		setCondition(all, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation}, now)
	}
}

func setCondition(all *[]metav1.Condition, c metav1.Condition, now time.Time) {
	c.Message, c.LastTransitionTime = clip(c.Message, MaxMessage), second(now)
	meta.SetStatusCondition(all, c)
}

// word is the text if it can be the reason of a condition, and the other one if not.
func word(text, other string) string {
	isWord := len(text) > 0 && len(text) <= 1024 && strings.Trim(text, letters+"0123456789") == "" && strings.Contains(letters, text[:1])
	if isWord {
		return text
	}
	return other
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// first is the first text that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
