// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/belayproject/belay/identity/identitytest"
)

// figures are what has happened in worlds.
type figures struct {
	worlds, lives, killed, holds, twice int
	// collected Leases are of members that were dead, or had been cut off or asleep for GCAfter; living ones should not be among them. raced is how
	// many deletions found another version.
	collected, silent, living, raced int
	lost                             int // peers that views have called lost
	simulated                        time.Duration
}

func (f *figures) add(g figures) {
	f.worlds += g.worlds
	f.lives += g.lives
	f.killed += g.killed
	f.holds += g.holds
	f.twice += g.twice
	f.collected += g.collected
	f.silent += g.silent
	f.living += g.living
	f.raced += g.raced
	f.lost += g.lost
	f.simulated += g.simulated
}

func (f figures) String() string {
	return fmt.Sprintf("seeds %d, simulated %.1f h; members %d, killed %d, holds %d, two at a time %d; "+
		"lost %d; collected %d, of them silent but not dead %d, alive %d; deletions that came too late %d",
		f.worlds, f.simulated.Hours(), f.lives, f.killed, f.holds, f.twice, f.lost, f.collected, f.silent, f.living, f.raced)
}

// checkRequests goes through all that was asked of the server, in the order in which it was carried out.
func (u *universe) checkRequests() {
	collectors := map[string]*life{}
	for _, l := range u.lives {
		collectors[l.collector()] = l
	}
	u.figures.lives = len(u.lives)
	written, makers := map[string]time.Time{}, map[string]string{}
	for _, q := range inOrder(u.server.Requests()) {
		u.checkConditions(q)
		l := collectors[q.Client]
		if l != nil && q.Version != "" {
			u.checkCollection(l, q, written[q.Name])
		} else if l != nil && q.Err != nil {
			u.figures.raced++
		}
		switch {
		case q.Version == "":
		case q.Operation == identitytest.Delete:
			delete(written, q.Name)
		default:
			u.checkHolder(q, makers)
			written[q.Name] = q.At
		}
	}
}

// inOrder sorts the requests that have changed something by that, before all others.
func inOrder(all []identitytest.Request) []identitytest.Request {
	version := func(q identitytest.Request) uint64 {
		n, _ := strconv.ParseUint(q.Version, 10, 64)
		return n
	}
	slices.SortStableFunc(all, func(a, b identitytest.Request) int { return cmp.Compare(version(a), version(b)) })
	return all
}

// checkConditions is I3 and I7: who wrote on top of a version or deleted it had seen it.
func (u *universe) checkConditions(q identitytest.Request) {
	switch q.Operation {
	case identitytest.Update:
		if q.Lease.ResourceVersion == "" || q.Lease.UID == "" {
			u.wrong("I3: %s updates without a version: %v", q.Client, q.Lease)
		}
	case identitytest.Delete:
		if p := q.Preconditions; p == nil || p.UID == nil || p.ResourceVersion == nil {
			u.wrong("I7: %s deletes without preconditions: %+v", q.Client, p)
		}
	}
}

// checkHolder is I3: nobody writes a holder that another has made up. makers are who has, by holder.
func (u *universe) checkHolder(q identitytest.Request, makers map[string]string) {
	holder := *q.Lease.Spec.HolderIdentity
	if maker, ok := makers[holder]; ok && maker != q.Client && q.Client != admin {
		u.wrong("I3: %s renews %s for %q of %s", q.Client, q.Name, holder, maker)
	} else if !ok {
		makers[holder] = q.Client
	}
}

// checkCollection is P1: nobody has written the Lease for GCAfter, by the clock of the collector.
func (u *universe) checkCollection(l *life, q identitytest.Request, last time.Time) {
	quiet := time.Duration(float64(q.At.Sub(last)) * l.host.rate)
	u.figures.collected++
	switch {
	case quiet < worldGCAfter-time.Microsecond:
		u.figures.living++
		u.wrong("P1: %s deletes the Lease of %s, which was written %v ago", q.Client, q.Name, quiet)
	case u.alive(q.Name, q.At):
		u.figures.silent++
	}
}

// alive says whether a process of a name was alive at a time.
func (u *universe) alive(name string, at time.Time) bool {
	for _, l := range u.lives {
		if l.host.name == name && at.Before(l.asked) {
			return true
		}
	}
	return false
}
