// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeShadow is the record of the node of the same name: what the controllers ask of it, and what its agent says.
//
// Its rules stand on the whole object, and what is left out has a default, so that a write that leaves out a number, or the whole status, is
// caught by them.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=nsh,categories=belay
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Runs",type=string,JSONPath=`.status.current.name`,description="Revision that the node runs"
// +kubebuilder:printcolumn:name="Wanted",type=string,JSONPath=`.spec.revision.name`,description="Revision of the last grant"
// +kubebuilder:printcolumn:name="Grant",type=integer,JSONPath=`.spec.grant`,description="Last attempt that was granted"
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.status.attempt`,description="Last attempt that the agent has answered"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="How far that attempt is"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,description="Why it is there, in one word"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.message`,description="Why it is there"
// +kubebuilder:printcolumn:name="Revoked",type=integer,priority=1,JSONPath=`.spec.revoked`,description="Attempts up to it can't be committed any more"
// +kubebuilder:printcolumn:name="Previous",type=string,priority=1,JSONPath=`.status.previous.name`,description="Revision that the node could go back to"
// +kubebuilder:printcolumn:name="Staged",type=string,priority=1,JSONPath=`.status.staged.name`,description="Revision that was fetched ahead"
// +kubebuilder:printcolumn:name="Digest",type=string,priority=1,JSONPath=`.status.current.digest`,description="Digest of what the node runs"
// +kubebuilder:printcolumn:name="Boot",type=string,priority=1,JSONPath=`.status.bootID`,description="Boot of the node"
//
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || (self.spec.grant == 0 && self.spec.proceed == 0 && self.spec.undo == 0)",message="a new shadow grants nothing: grant, proceed and undo must be 0"
// +kubebuilder:validation:XValidation:rule="self.spec.nodeUID == oldSelf.spec.nodeUID",message="a shadow belongs to one incarnation of its Node: nodeUID must not change"
// +kubebuilder:validation:XValidation:rule="has(self.spec.domain) == has(oldSelf.spec.domain) && (!has(self.spec.domain) || self.spec.domain == oldSelf.spec.domain)",message="a shadow belongs to one domain: domain must not change; another controller makes its own when this shadow is gone"
// +kubebuilder:validation:XValidation:rule="self.spec.grant >= oldSelf.spec.grant",message="grant must not decrease, nor be left out"
// +kubebuilder:validation:XValidation:rule="self.spec.revoked >= oldSelf.spec.revoked",message="revoked must not decrease, nor be left out"
// +kubebuilder:validation:XValidation:rule="self.spec.grant > oldSelf.spec.grant || (self.spec.revert == oldSelf.spec.revert && has(self.spec.revision) == has(oldSelf.spec.revision) && (!has(self.spec.revision) || self.spec.revision == oldSelf.spec.revision))",message="revision and revert change only together with a higher grant"
// +kubebuilder:validation:XValidation:rule="self.spec.grant == oldSelf.spec.grant || (has(self.spec.revision) && self.spec.grant > self.spec.revoked && self.spec.grant > self.status.attempt)",message="a grant names a revision, and is above what was revoked and what the agent has answered"
// +kubebuilder:validation:XValidation:rule="self.spec.revoked == oldSelf.spec.revoked || self.spec.revoked > self.status.attempt",message="what the agent has answered can't be revoked"
// +kubebuilder:validation:XValidation:rule="self.spec.proceed == oldSelf.spec.proceed || (self.spec.proceed == self.status.attempt && self.status.?phase.orValue('None') == 'Committed' && self.spec.undo < self.spec.proceed)",message="proceed grows only to the attempt that the agent has committed, and that was not told to be undone; it must not decrease, nor be left out"
// +kubebuilder:validation:XValidation:rule="self.spec.undo == oldSelf.spec.undo || (self.spec.undo == self.status.attempt && self.status.?phase.orValue('None') == 'Committed' && self.spec.proceed < self.spec.undo)",message="undo grows only to the attempt that the agent has committed, and that was not told to proceed; it must not decrease, nor be left out"
// +kubebuilder:validation:XValidation:rule="self.status.attempt >= oldSelf.status.attempt",message="the attempt must not decrease, nor be left out"
// +kubebuilder:validation:XValidation:rule="self.status.known || !oldSelf.status.known",message="what the agent knows it can't forget: known must stay true"
// +kubebuilder:validation:XValidation:rule="!oldSelf.status.known || self.status.attempt == oldSelf.status.attempt || (self.status.attempt == self.spec.grant && self.status.attempt > self.spec.revoked && has(self.status.revision) && has(self.spec.revision) && self.status.revision.name == self.spec.revision.name && has(self.status.revision.digest) == has(self.spec.revision.digest) && (!has(self.status.revision.digest) || self.status.revision.digest == self.spec.revision.digest))",message="the agent can answer only the attempt that is granted and not revoked, with its revision"
// +kubebuilder:validation:XValidation:rule="!oldSelf.status.known || self.status.attempt == oldSelf.status.attempt || (self.status.?phase.orValue('None') == 'Committed' && oldSelf.status.?phase.orValue('None') in ['None', 'Refused', 'Undone', 'Done', 'FailedClean', 'FailedBroken']) || (self.status.?phase.orValue('None') == 'Refused' && oldSelf.status.?phase.orValue('None') in ['None', 'Refused', 'Undone', 'Done', 'FailedClean'])",message="an attempt begins with Committed or Refused, when the one before has ended"
// +kubebuilder:validation:XValidation:rule="!oldSelf.status.known || self.status.attempt != oldSelf.status.attempt || (self.status.broken == oldSelf.status.broken && has(self.status.revision) == has(oldSelf.status.revision) && (!has(self.status.revision) || self.status.revision == oldSelf.status.revision))",message="revision and broken must not change within an attempt"
// +kubebuilder:validation:XValidation:rule="!oldSelf.status.known || self.status.attempt != oldSelf.status.attempt || (has(self.status.phase) == has(oldSelf.status.phase) && (!has(self.status.phase) || self.status.phase == oldSelf.status.phase)) || (oldSelf.status.?phase.orValue('None') == 'Committed' && self.status.?phase.orValue('None') in ['Undone', 'Applying', 'Verifying', 'Done', 'FailedClean', 'FailedBroken']) || (oldSelf.status.?phase.orValue('None') in ['Applying', 'Verifying', 'FailedBroken'] && self.status.?phase.orValue('None') in ['Verifying', 'Done', 'FailedClean', 'FailedBroken'])",message="the phase doesn't follow the one before"
// +kubebuilder:validation:XValidation:rule="!oldSelf.status.known || oldSelf.status.?phase.orValue('None') != 'Committed' || self.status.?phase.orValue('None') == 'Committed' || (self.status.?phase.orValue('None') == 'Undone' ? self.spec.undo >= oldSelf.status.attempt && !oldSelf.status.broken : self.spec.proceed >= oldSelf.status.attempt || (self.status.?phase.orValue('None') == 'FailedBroken' && oldSelf.status.broken && self.spec.undo >= oldSelf.status.attempt))",message="a committed attempt is begun after the word to proceed, and given up after the word to undo it, which leaves a broken node broken"
// +kubebuilder:validation:XValidation:rule="!oldSelf.status.known || self.status.attempt == oldSelf.status.attempt || self.status.broken == (oldSelf.status.?phase.orValue('None') == 'FailedBroken')",message="broken says whether the node was broken when the attempt was committed"
type NodeShadow struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the controllers ask of the node.
	// +required
	Spec NodeShadowSpec `json:"spec"`

	// status is what the node's agent says. Empty in a new shadow.
	// +optional
	// +kubebuilder:default={}
	Status NodeShadowStatus `json:"status,omitempty"`
}

// NodeShadowSpec is what the controllers ask of a node.
type NodeShadowSpec struct {
	// nodeUID is the UID of the Node that the shadow belongs to. An agent on a Node with another UID follows no order in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	NodeUID string `json:"nodeUID"`

	// domain is the name of the DisruptionLedger in which the node has its slots. A node is in one domain at a time. It must not change.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Domain string `json:"domain,omitempty"`

	// stage is the revision that the agent may fetch ahead, without any disruption.
	// +optional
	Stage *RevisionRef `json:"stage,omitempty"`

	// revision is what the granted attempt is to bring the node to. It changes only together with grant.
	// +optional
	Revision *RevisionRef `json:"revision,omitempty"`

	// revert says that the granted attempt goes back to the revision, which the node has run before.
	// +optional
	// +kubebuilder:default=false
	Revert bool `json:"revert,omitempty"`

	// grant is the last attempt that the node may commit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	Grant int64 `json:"grant,omitempty"`

	// revoked: no attempt up to it may be committed any more.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	Revoked int64 `json:"revoked,omitempty"`

	// proceed is the last attempt for which the node is empty, as far as the class of its revision asks for that: the agent may apply it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	Proceed int64 `json:"proceed,omitempty"`

	// undo is the last attempt that the node should give up, if it has not begun to apply it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	Undo int64 `json:"undo,omitempty"`
}

// RevisionRef names a revision and its content. A node that runs another digest under the same name does not run it.
type RevisionRef struct {
	// name of the revision.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^@]+$`
	Name string `json:"name"`

	// digest of its content. Absent means whatever has the name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Digest string `json:"digest,omitempty"`
}

// NodeShadowList is a list of NodeShadows.
//
// +kubebuilder:object:root=true
type NodeShadowList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeShadow `json:"items"`
}
