// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strings"
	"time"
)

// A NodeHealth is what was seen of a machine's Node. A machine whose Node can't be asked has none.
type NodeHealth struct {
	// Gone means that the workload cluster has no such Node; Since is when that was seen first.
	Gone  bool
	Since time.Time
	// Conditions are those of the Node.
	Conditions []Condition
}

// A Condition is one of a Node. Status is "True", "False" or "Unknown".
type Condition struct {
	Type, Status string
	// Since is when this status was seen first, by the clock of who decides and not by that of the machine.
	Since time.Time
}

// A HealthCheck mends or replaces machines that have been unhealthy for too long.
type HealthCheck struct {
	Key
	UID string
	// Version is that of the store; a write with an older one fails.
	Version    string
	Generation int64
	Spec       HealthSpec
	Status     HealthStatus
}

// HealthSpec is what a check does.
type HealthSpec struct {
	// Selector are labels of its machines. A selector with expressions goes to [HealthView.Matches]. An empty one selects nothing.
	Selector map[string]string
	// Unhealthy is when a machine is, any of them; none is Ready=False and Ready=Unknown for 10 minutes.
	Unhealthy []UnhealthyWhen
	// StartupTimeout is how long a machine may have no Node since its creation, or none any more; 0 is 10 minutes.
	StartupTimeout time.Duration
	// MaxUnhealthy is how many of the machines may be unhealthy, a share rounded up. With more nothing is begun, because then it is not the
	// machines. The zero value is 20 percent.
	MaxUnhealthy Amount
	// Ladder are the remedies in their order; none is a reboot, and then another machine. One that can't be had is left out.
	Ladder []Rung
	// Cooldown is how long a machine has to be healthy after a remedy until it has helped; before that the ladder is climbed further. 0 is
	// 10 minutes.
	Cooldown time.Duration
	// MaxLineage is how many machines in a row are given up; 0 is 3. Then it is not the machine, but what it is made of.
	MaxLineage int
	// Proven is the age at which a machine has shown that what it is made of is good: its lineage counts no more. 0 is 6 hours.
	Proven time.Duration
	// Paused stops every remedy. Status follows.
	Paused bool
}

// Defaults of a health check.
const (
	defaultUnhealthy      = 10 * time.Minute
	defaultStartupTimeout = 10 * time.Minute
	defaultMaxUnhealthy   = 20
	defaultCooldown       = 10 * time.Minute
	defaultMaxLineage     = 3
	defaultProven         = 6 * time.Hour
	defaultWait           = 10 * time.Minute
)

// An UnhealthyWhen is one way to be unhealthy: a condition of the Node with a status, or a phase of the machine, for a time.
type UnhealthyWhen struct {
	Condition, Status string
	Phase             Phase
	// For is how long; 0 is at once.
	For time.Duration
}

// A Rung is one remedy of a ladder.
type Rung struct {
	Kind RemedyKind
	// Tries is how often it is tried; 0 is once.
	Tries int
	// Wait is how long it is given to help; 0 is 10 minutes.
	Wait time.Duration
}

// A RemedyKind names a remedy.
type RemedyKind string

// Remedies.
const (
	// RemedyRestartAgent restarts the agent or the kubelet of the node.
	RemedyRestartAgent RemedyKind = "RestartAgent"
	// RemedyReboot restarts the instance.
	RemedyReboot RemedyKind = "Reboot"
	// RemedyReplace deletes the machine, and its set makes another one. A machine without a set is not replaced.
	RemedyReplace RemedyKind = "Replace"
	// RemedyQuarantine keeps the machine for whoever looks into it.
	RemedyQuarantine RemedyKind = "Quarantine"
)

// HealthStatus is what is known of a check.
type HealthStatus struct {
	// Expected are its machines, Healthy those that are. A machine of which nothing is known counts as neither healthy nor unhealthy.
	Expected, Healthy, Unhealthy int
	// Attempts are the remedies under way or in their cooldown, by machine. They are stored before they are carried out, and what they have of the
	// disruption budget is given back before they are dropped.
	Attempts []Attempt
	// Message says why nothing is begun; empty if nothing keeps it.
	Message string
	// Observed is the generation that the rest speaks of.
	Observed int64
}

// An Attempt is the latest remedy of one machine.
type Attempt struct {
	Key
	// UID is that of the machine.
	UID  string
	Kind RemedyKind
	// Rung is the index in the ladder, Try how often this rung was taken, from 1.
	Rung, Try int
	// Since is when it was begun.
	Since time.Time
	// Healthy is since when the machine has been healthy again; zero while it isn't.
	Healthy time.Time
	// Reason is what it was begun for.
	Reason string
}

// ID is the same for the same attempt, and that of no other.
func (a Attempt) ID() string { return fmt.Sprintf("%s-%d-%d-%d", a.UID, a.Since.Unix(), a.Rung, a.Try) }

// Loan names what an attempt has of the disruption budget, from before it begins until it leaves the status of its check: the machine is mended, ended, or
// somebody else's. It is empty for one that disrupts nothing, and at the end of the ladder.
func (a Attempt) Loan() string {
	if !disrupts(a.Kind) {
		return ""
	}
	return remedyLoan + a.ID()
}

const remedyLoan = "remedy-"

// RemedyLoan reports whether a loan of a disruption budget is that of an [Attempt], which its health check gives back, and not that of the machine's own changes.
func RemedyLoan(loan string) bool { return strings.HasPrefix(loan, remedyLoan) }

// A HealthView is all that [DecideHealth] looks at.
type HealthView struct {
	Check HealthCheck
	Now   time.Time
	// Machines are all of the namespace.
	Machines []Machine
	// Matches is as in [SetView].
	Matches func(labels map[string]string) bool
	// Nodes are those of the machines; one that is missing is not known. NodesKnown is false while the workload cluster can't be asked: then nothing
	// that its Node says or doesn't say makes a machine unhealthy.
	Nodes      map[Key]NodeHealth
	NodesKnown bool
	// Budget is how many more machines may be disrupted now, by all that share it. A machine that has an attempt with a loan is counted already: the next
	// rung takes none.
	Budget int
	// Refused are machines, by UID, whose disruption the budget has refused, with its reason.
	Refused map[string]string
	// Others are the attempts of other checks. While one of them disrupts a machine, this check doesn't.
	Others []Attempt
	// CanRestartAgent and CanReboot are whether there is something that does.
	CanRestartAgent, CanReboot bool
}

// A HealthDecision is what comes next for a check. Status is stored first if Store is set, guarded by Version, and on a conflict nothing is done. Then
// come the remedies.
type HealthDecision struct {
	Status   HealthStatus
	Store    bool
	Remedies []Remedy
	// Skipped are unhealthy machines for which nothing is begun now, each with the reason.
	Skipped []Choice
	// After is when to look again though nothing has changed; 0 is not before.
	After time.Duration
}

// A Remedy is to be carried out. It comes again in each pass until its time is over: whoever carries it out does so once for each ID.
type Remedy struct {
	// Choice is the machine, in the version that was looked at.
	Choice
	Kind RemedyKind
	// ID is that of the attempt, as for [provider.Power], and Loan what the machine must have of the disruption budget before; empty is nothing.
	ID, Loan string
	// Annotations are written to the machine first, guarded by Version.
	Annotations map[string]string
}
