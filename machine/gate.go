// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

// Roles that are understood. Others may be added to them, as "ingress".
const (
	RoleWorker       = "worker"
	RoleControlPlane = "control-plane"
	RoleEtcd         = "etcd"
)

// A GateView is all that [CheckEnd] looks at.
type GateView struct {
	// Ending are the machines that are to end, all together.
	Ending []Key
	// Machines are all of the cluster, those included.
	Machines []Machine
	// Members are those of the cluster's own store, as etcd says. MembersKnown is false if that could not be asked.
	Members      []Member
	MembersKnown bool
	// Volumes are the local ones, of every machine.
	Volumes []LocalVolume
	// Workloads are those of which pods run on the machines that are to end.
	Workloads []Workload
	// As is what a gate's findings are taken for, whatever they are by themselves: Warn, Block, or [Ignore]. The zero value leaves them as they are.
	As map[Gate]Severity
}

// A Member is one of a quorum.
type Member struct {
	Name string
	// Machine is where it runs; zero if that is not known.
	Machine Key
	// Healthy is what the store says. Of those that would remain, one whose machine is in [PhaseProvisioning] or [PhaseJoining] counts as if it were not.
	Healthy bool
	// Learner has no vote.
	Learner bool
}

// A LocalVolume is data that is on one machine alone.
type LocalVolume struct {
	Name    string
	Machine Key
	// Claim is who uses it, as namespace/name; empty if nobody does.
	Claim string
}

// A Workload is what has pods on machines that are to end.
type Workload struct {
	// Name is for people, as "Deployment shop/cart".
	Name string
	// Ready are its pods that are ready, Ending those of them on machines that are to end.
	Ready, Ending int
}

// A Severity is what a finding means.
type Severity string

// Severities.
const (
	Warn   Severity = "Warn"
	Block  Severity = "Block"
	Ignore Severity = "Ignore"
)

// A Gate is one question before an end.
type Gate string

// Gates.
const (
	GateUnknown      Gate = "Unknown"      // a machine that is not there
	GateDecommission Gate = "Decommission" // a control-plane machine ends in two steps
	GateControlPlane Gate = "ControlPlane" // machines of the control plane remain
	GateQuorum       Gate = "Quorum"       // the members that remain can decide
	GateRole         Gate = "Role"         // somebody else has the role
	GateLocalData    Gate = "LocalData"    // nothing is on this machine alone
	GateReplica      Gate = "Replica"      // another pod of the same runs elsewhere
)

// A Finding is one answer.
type Finding struct {
	Gate     Gate
	Severity Severity
	// Machine is the one that it is about; zero if about all.
	Machine Key
	Message string
}
