// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import "time"

// A Set keeps a number of equal machines.
type Set struct {
	Key
	UID string
	// Version is that of the store; a write with an older one fails.
	Version     string
	Generation  int64
	Labels      map[string]string
	Annotations map[string]string
	Created     time.Time
	// Deleted is when somebody asked for its end; zero if nobody did.
	Deleted time.Time
	// Owner is the deployment that it belongs to.
	Owner  Owner
	Spec   SetSpec
	Status SetStatus
}

// SetSpec is what is wanted of a set.
type SetSpec struct {
	Replicas int
	// Selector are labels that all of its machines have. A selector with expressions goes to [SetView.Matches]. It never changes.
	Selector map[string]string
	Template Template
	// Order is which machines go first when the set shrinks, of those that are equal otherwise.
	Order DeleteOrder
	// MaxProvisioning bounds how many of its machines are on their way to their first Node at once; 0 is no bound.
	MaxProvisioning int
	// MinReady is how long a Node has to be ready until its machine is available.
	MinReady time.Duration
	// Paused stops every change. Status follows.
	Paused bool
}

// A Template is what the machines of a set are made of. Of Spec, what belongs to one machine alone is left out: ProviderID, Adopt, Decommission and Paused.
type Template struct {
	Labels      map[string]string
	Annotations map[string]string
	Spec        Spec
}

// A DeleteOrder says which of several equal machines goes first.
type DeleteOrder string

// Orders. The zero value is RandomFirst: an order that has nothing to do with age, and is the same in each pass.
const (
	RandomFirst DeleteOrder = "Random"
	NewestFirst DeleteOrder = "Newest"
	OldestFirst DeleteOrder = "Oldest"
)

// SetStatus is what is known of a set.
type SetStatus struct {
	// Replicas are the machines that it owns, those under deletion included.
	Replicas int
	// Labeled are those of them that the selector matches, Ready those whose Node is ready, Available those that have been for SetSpec.MinReady.
	// A machine whose Node can't be asked is neither ready nor available.
	Labeled, Ready, Available int
	// Reserved are the machines that are to be created. They are stored first: a name is created as often as it takes, and counts until it is seen.
	Reserved []Reservation
	// Heirs are reservations to come, for machines that were given up as broken.
	Heirs []Heir
	// Serial counts the names that were ever reserved: none is used again.
	Serial int64
	// Failure is what keeps its machines from coming up, as a stockout; nil if nothing does.
	Failure *Failure
	// Message says what it waits for; empty if for nothing.
	Message string
	// Observed is the generation that the rest speaks of.
	Observed int64
}

// A Reservation is a machine that is to be created.
type Reservation struct {
	Name string
	// Heir is set for one that stands in for a broken machine.
	Heir Heir
}

// An Heir stands in for a machine that was given up as broken.
type Heir struct {
	// Of is the name of that machine.
	Of string
	// Lineage is how many machines in a row were given up before the heir, at least 1.
	Lineage int
}

// Names of labels and annotations on sets and their machines.
const (
	// adoptedAnnotation has the UID of a set or deployment that was restored from a copy, when somebody has looked at it: then it takes its machines
	// over and goes on.
	adoptedAnnotation = "machine.belay.dev/adopted"
	// NoCreateAnnotation on a set, with any value, keeps it from creating machines: it is an old one, or machines are being moved to it.
	NoCreateAnnotation = "machine.belay.dev/no-create"
	// QuarantineAnnotation on a machine, with any value, keeps it for whoever looks into what broke it: it is neither mended nor chosen to go.
	QuarantineAnnotation = "machine.belay.dev/quarantine"
	// LineageAnnotation is how many machines were given up in a row before this one.
	LineageAnnotation = "machine.belay.dev/lineage"
	// replacementOfAnnotation is the name of the machine that this one stands in for.
	replacementOfAnnotation = "machine.belay.dev/replacement-of"
	// givenUpAnnotation on a machine that is about to be deleted as broken has the lineage of its heir.
	givenUpAnnotation = "machine.belay.dev/given-up"
)

// A SetView is all that [DecideSet] looks at.
type SetView struct {
	Set Set
	Now time.Time
	// Machines are all of the namespace.
	Machines []Machine
	// Matches says whether a machine with these labels is selected; nil goes by SetSpec.Selector.
	Matches func(labels map[string]string) bool
	// Live means that Set, and after it Machines, were read from the server itself in this pass, and not from a cache.
	Live bool
	// Restored means that the set was restored from a copy of another cluster or time. It does nothing until the annotation machine.belay.dev/adopted says so.
	Restored bool
	// Nodes are those of the machines; one that is missing is not known.
	Nodes map[Key]NodeHealth
	// Cost is what the end of a machine costs, as the pods on it; the cheapest goes first, one that is missing costs nothing.
	Cost map[Key]float64
	// Refused is why the provider's [provider.Group] did not take SetDecision.Size; nil if it did, or if there is none. Nothing is created until then.
	Refused *Failure
}

// A SetDecision is what comes next for a set. Status is stored first if Store is set, guarded by the set's Version, and on a conflict nothing is done.
// Then come the rest, in any order or not at all.
type SetDecision struct {
	Status SetStatus
	Store  bool
	// NeedLive means that there is something to do, and that it takes a view with Live to decide it.
	NeedLive bool
	// Adopt are machines that become the set's own, by a patch of their owner guarded by Version.
	Adopt []Choice
	// Create are machines to be created, as [Set.Machine] makes them. One that exists is a success.
	Create []Reservation
	// Delete are machines to be deleted, guarded by UID and Version.
	Delete []Choice
	// Size is how many machines there are to be once all this is done, for [provider.Group].
	Size int
	// Kept are machines that would be deleted if their reason did not forbid it.
	Kept []Choice
	// After is when to look again though nothing has changed; 0 is not before.
	After time.Duration
}

// A Choice is one object in the version that was looked at, and why it was chosen.
type Choice struct {
	Key
	UID, Version string
	Reason       string
}
