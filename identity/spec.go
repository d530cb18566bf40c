// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Name returns the name that KEP-1965 gives to the Lease of a component on a host: prefix, "-", and 26 characters: host and component,
// each behind its length as a big-endian uint16, hashed with SHA-256, of which the first 16 bytes are written in base32 without
// padding in lower case. Host and component may hold any bytes; of longer strings the first 65,535 bytes count for all.
func Name(prefix, component, host string) string {
	var b []byte
	for _, s := range []string{host, component} {
		s = s[:min(len(s), maxHashed)]
		b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
		b = append(b, s...)
	}
	sum := sha256.Sum256(b)
	return prefix + "-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// maxHashed is how many bytes of a string count for its hash: as many as a uint16 can tell the number of.
const maxHashed = 1<<16 - 1

// NodeName returns the name of the Lease of a node's agent: prefix, "-" and the node's name, or the node's name alone if prefix is empty.
// [New] refuses a name of more than 253 characters.
func NodeName(prefix, node string) string {
	if prefix == "" {
		return node
	}
	return prefix + "-" + node
}

// A Spec is what a [Member] is.
type Spec struct {
	// Namespace and Name are those of the Lease. Required. See [Name] and [NodeName].
	Namespace, Name string
	// Component is what kind of process this is, a legal label value, for example "belay-agent". Required.
	Component string
	// Host is the name of the host, of any length and characters. Required.
	Host string
	// Labels and Annotations are added to those of the package. Keys below identity.belay.dev/ are refused. They are written at each
	// acquisition, and by the next renewal after somebody has edited the Lease; what others have added to it stays.
	Labels, Annotations map[string]string
	// Owner, if not nil, becomes the only owner of the Lease: a Node, so that the Lease goes with it.
	Owner *metav1.OwnerReference
	// Nodes, if not nil, and Node are asked before each acquisition whether the Node is still the one with the UID of Fingerprint.NodeUID.
	// If not, Run ends with [ErrNodeGone]. A renewal asks nothing: that Node must be the Owner. When it is deleted, the garbage collector of the
	// cluster deletes the Lease, the next renewal does not find it, and the acquisition that follows asks.
	Nodes NodeClient
	Node  string
	// Fingerprint tells this process from another with the same name. Its BootID or PodUID must be set.
	Fingerprint Fingerprint
	// Timing is how often and how long. Zero fields are those of [ControlPlane].
	Timing Timing
	// LockFile, if not empty, is an absolute path on the host that is locked (flock) for as long as Run runs. It excludes a second process
	// on the same host at once, and shows that the one before is gone, so that its Lease is taken over without a wait. The directory
	// must exist, be on a local file system and be shared by all processes of this name on the host. Nothing may remove the file: who
	// comes after that locks another one and is not excluded. It watches the Lease then, and finds the duplicate.
	LockFile string
	// OnDuplicate is what happens when another living process has the name.
	OnDuplicate OnDuplicate
	// KeepOnStop leaves the Lease as it is at the end, for the next start. Otherwise it is deleted, in the version last written.
	KeepOnStop bool
	// OmitManagedFields asks the server not to keep the owners of fields on the Lease: 45 % fewer bytes for each renewal and watcher.
	OmitManagedFields bool
}

// Key is the name of the Lease with its namespace.
func (s Spec) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// OnDuplicate is what a Member does that finds its name in use.
type OnDuplicate string

// The ways to treat a duplicate.
const (
	// FailOnDuplicate ends Run with a [DuplicateError]. It is what the empty value means.
	FailOnDuplicate OnDuplicate = "Fail"
	// WaitOnDuplicate waits until the name is free, as a pod does that is to take over from its predecessor on the same node. [Member.Healthy]
	// returns the DuplicateError meanwhile.
	WaitOnDuplicate OnDuplicate = "Wait"
)

// Timing is how often a member writes, and how long it counts as alive. All members and views of a set share it.
type Timing struct {
	// Renew is the time between two renewals, at least 1 s. Each renewal is up to Jitter × Renew later, Jitter being 0 to 0.5.
	Renew  time.Duration
	Jitter float64
	// Hold is how long a member goes on without a successful renewal: its work's context ends then. At least 2 × Renew × (1 + Jitter).
	Hold time.Duration
	// Liveness is how long a view waits before it calls a quiet member lost. Hold is at most 0.9 × Liveness.
	Liveness time.Duration
	// Duration is the leaseDurationSeconds in the Lease, whole seconds, for readers that go by KEP-1965. At least 3 × Renew.
	Duration time.Duration
	// Stop is how long the release may take once the work has returned.
	Stop time.Duration
}

// ControlPlane is KEP-1965's timing: a renewal each 10 s (+4 %), a duration of an hour, a hold of 30 s, liveness 40 s; 10 s to stop.
func ControlPlane() Timing {
	return Timing{
		Renew: 10 * time.Second, Jitter: 0.04, Hold: 30 * time.Second, Liveness: 40 * time.Second,
		Duration: time.Hour, Stop: 10 * time.Second,
	}
}

// NodeAgent is for thousands of members: a renewal each 30 s (+4 %), a duration of an hour, a hold of 90 s, liveness 120 s; 10 s to stop.
// 10,000 members write 333 times a second, as 3,300 kubelets do.
func NodeAgent() Timing {
	return Timing{
		Renew: 30 * time.Second, Jitter: 0.04, Hold: 90 * time.Second, Liveness: 120 * time.Second,
		Duration: time.Hour, Stop: 10 * time.Second,
	}
}
