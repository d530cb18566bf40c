// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// A sighting is all that decides what becomes of a Lease that was found.
type sighting struct {
	lease *coordinationv1.Lease
	// ours is set if this very process made up the holder, for a hold that is over or for the one that it tries to begin.
	ours bool
	// fingerprint is our own; lock is the file that we hold the lock of, see idOf, "" if none.
	fingerprint Fingerprint
	lock        string
	// quiet is how long this version is known to have stood, by our own clock; liveness is how long it has to, see
	// takeover; alive is set if the holder has written while we watched.
	quiet, liveness time.Duration
	alive           bool
}

// maxHolderDuration is how much of a holder's leaseDurationSeconds a leader waits for: a typo must not keep a name for
// ever.
const maxHolderDuration = 10 * time.Minute

// A takeover says how long a holder must be silent before its Lease is taken, and which setting says so.
type takeover struct {
	after  time.Duration
	reason string
}

// takeoverByLiveness is the rule of a member: all members of a set share one Timing, and the duration in their Leases
// is for other readers.
func takeoverByLiveness(liveness time.Duration) takeover {
	return takeover{liveness, fmt.Sprintf("the Liveness here is %v", liveness)}
}

// takeoverByDuration is the rule of a leader. A holder may have another Liveness, or be of client-go, and leads on for
// up to the duration that it has written: the leader waits for the longer of the two.
func takeoverByDuration(l *coordinationv1.Lease, liveness time.Duration) takeover {
	seconds := ptr.Deref(l.Spec.LeaseDurationSeconds, 0)
	duration := time.Duration(seconds) * time.Second
	next := takeoverByLiveness(liveness)
	if min(duration, maxHolderDuration) <= liveness {
		return next
	}
	most := ""
	if duration > maxHolderDuration {
		duration, most = maxHolderDuration, fmt.Sprintf(", of which at most %v count", maxHolderDuration)
	}
	return takeover{duration, fmt.Sprintf("the holder's leaseDurationSeconds is %d%s; %s", seconds, most, next.reason)}
}

// verdict is what to do with a Lease that was found.
type verdict int

const (
	keepWatching verdict = iota
	adopt
	duplicate
)

// judge decides. A Lease is taken over only from a holder that has given it up, that was ourselves, that the lock proves to be gone, or
// that was quiet for longer than it could have held on.
func judge(s sighting) verdict {
	switch {
	case holderOf(s.lease) == "", s.ours, s.lockProves(), s.quiet >= s.liveness:
		return adopt
	case s.alive:
		return duplicate
	}
	return keepWatching
}

// lockProves reports whether the holder ran on this boot of this machine and had the lock that is ours now. As long as it runs it has the
// file open, so that no other file can have that inode.
func (s sighting) lockProves() bool {
	return s.lock != "" && s.lease.Annotations[lockFileAnnotation] == s.lock &&
		s.fingerprint.SameBoot(fingerprintOf(s.lease))
}

// A watch is what is known of a foreign Lease by reading it again and again. Times are our own Elapsed.
type watch struct {
	begun     bool
	uid       types.UID
	version   string
	holder    string
	renewTime metav1.MicroTime
	// since is when the answer came that first showed this version.
	since time.Duration
	// alive is set once a holder has written.
	alive bool
}

// saw is the watch after one more reading. Any other version begins the count anew. A sign of life is a new renewTime, whichever,
// another holder or another Lease: somebody who edits labels is none.
func (w watch) saw(l *coordinationv1.Lease, answered time.Duration) watch {
	if w.begun && w.uid == l.UID && w.version == l.ResourceVersion {
		return w
	}
	next := watch{
		begun: true, uid: l.UID, version: l.ResourceVersion, holder: holderOf(l),
		renewTime: ptr.Deref(l.Spec.RenewTime, metav1.MicroTime{}), since: answered, alive: w.alive,
	}
	if w.begun && (w.uid != next.uid || w.holder != next.holder || !w.renewTime.Equal(&next.renewTime)) {
		next.alive = true
	}
	return next
}

// quiet is for how long the version is known to have stood, seen once more by a request that was sent then.
func (w watch) quiet(sent time.Duration) time.Duration { return max(0, sent-w.since) }
