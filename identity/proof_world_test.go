// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/ptr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

// admin is the client that edits.
const admin = "admin"

// The times of the worlds. Hold is as long as the slowest holder may have it beside the fastest observer.
const (
	worldLiveness = 12 * time.Second
	worldGCAfter  = 30 * time.Second
	worldPeriod   = 5 * time.Second
	// worldCalm is how long a world is left alone in the end. After the last backoff an observer may have to wait for its own Lease, and for the
	// brake; then it counts GCAfter; and its clock may be slow.
	worldCalm = (7*time.Second + 2*worldLiveness + worldGCAfter + 2*worldPeriod) * 21 / 20
)

func worldTiming() identity.Timing {
	return identity.Timing{
		Renew: 3 * time.Second, Jitter: 0.04, Hold: worldLiveness * 9 / 10, Liveness: worldLiveness, Duration: worldGCAfter, Stop: time.Second,
	}
}

// A universe is a world with all that is in it.
type universe struct {
	t      *testing.T
	seed   uint64
	r      *rand.Rand
	ctx    context.Context
	server *identitytest.Server
	hosts  []*host
	began  time.Time

	mu      sync.Mutex
	lives   []*life
	epochs  map[string]uint64 // the latest by name
	figures figures
}

// playWorld plays the world of a seed.
func playWorld(t *testing.T, seed uint64) figures {
	u := &universe{
		t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 1965)), server: identitytest.NewServer(), began: time.Now(), epochs: map[string]uint64{},
	}
	u.ctx = klog.NewContext(t.Context(), klog.Logger{})
	u.populate()
	for range 10 + u.r.IntN(11) {
		u.passes(time.Duration(u.r.Int64N(int64(12 * time.Second))))
		u.disturb()
	}
	u.heal()
	u.passes(worldCalm)
	u.checkEnd()
	for _, l := range u.lives {
		if l.alive() {
			l.end()
		}
	}
	for _, l := range u.lives {
		<-l.ended
	}
	u.checkRequests()
	u.figures.worlds = 1
	u.figures.simulated = time.Since(u.began)
	return u.figures
}

func (u *universe) passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// wrong is a failure of the world.
func (u *universe) wrong(format string, args ...any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.t.Errorf("seed %d, after %v: %s", u.seed, time.Since(u.began), fmt.Sprintf(format, args...))
}

// populate makes three or four names, of which one or two have two processes, and one or two observers. In every third world the two of the first
// name are on one machine, with a lock file.
func (u *universe) populate() {
	lock := ""
	if u.r.IntN(3) == 0 {
		lock = filepath.Join(u.t.TempDir(), "lock")
	}
	u.addHost("m0", lock)
	u.addHost("m0", lock)
	for i := range 2 + u.r.IntN(2) {
		u.addHost(fmt.Sprint("m", 1+i), "")
		if i == 0 && u.r.IntN(4) == 0 {
			u.addHost("m1", "")
		}
	}
	for i := range 1 + u.r.IntN(4)/3 {
		u.addHost(fmt.Sprint("o", i), "")
	}
}

// addHost makes a host with a process. Those with a lock are one machine.
func (u *universe) addHost(name, lock string) {
	const tenYears = 10 * 365 * 24 * time.Hour
	offset := time.Duration(u.r.Int64N(2*int64(tenYears))) - tenYears
	h := &host{
		u: u, name: name, id: fmt.Sprint(name, "-h", len(u.hosts)), rate: 0.95 + 0.1*u.r.Float64(), observes: strings.HasPrefix(name, "o"), lock: lock,
	}
	if h.machine = h.id; lock != "" {
		h.machine = "locked"
	}
	h.clock = identitytest.NewClock(offset, h.rate)
	u.hosts = append(u.hosts, h)
	h.start()
}

// heal ends all disturbances. Whoever is dead stays so, but observers.
func (u *universe) heal() {
	u.server.Start()
	u.server.ClearFaults()
	for _, h := range u.hosts {
		h.clock.Resume()
		if h.observes {
			h.start()
			h.life.feed.hangs(0)
		}
	}
	for _, l := range u.lives {
		if !l.alive() {
			l.cut()
		}
	}
}

// checkEnd: after a calm each name has its one holder if a process of it lives, and no Lease if not.
func (u *universe) checkEnd() {
	living, holders := map[string]bool{}, map[string]int{}
	for _, h := range u.hosts {
		if !h.life.alive() {
			continue
		}
		living[h.name] = true
		if _, ok := h.life.member.Epoch(); ok {
			holders[h.name]++
		}
	}
	there := map[string]bool{}
	for _, l := range u.server.Leases() {
		there[l.Name] = true
		if !living[l.Name] {
			u.wrong("R-ID-09: the Lease of %s, which is dead, is still there", l.Name)
		}
	}
	for name := range living {
		if !there[name] || holders[name] != 1 {
			u.wrong("R-ID-15: %s has %d holders, and a Lease: %t; want one holder with it", name, holders[name], there[name])
		}
	}
}

// disturb does one thing to the world.
func (u *universe) disturb() {
	h := u.hosts[u.r.IntN(len(u.hosts))]
	switch u.r.IntN(16) {
	case 0, 1, 2:
		h.kill()
	case 3:
		h.stop()
	case 4, 5:
		h.start()
	case 6, 7, 8: // the machine sleeps, for longer than GCAfter at times
		h.suspend(u.upTo(worldGCAfter * 2))
	case 9:
		u.server.Stop()
		time.AfterFunc(u.upTo(2*worldLiveness), u.server.Start)
	case 10: // a late answer, and then none, for less than a Hold or for longer
		u.server.Faults(
			identitytest.Fault{Client: h.life.client, Delay: u.upTo(worldTiming().Renew)},
			identitytest.Fault{Client: h.life.client, Times: 1 + u.r.IntN(8), Hang: true, Committed: u.r.IntN(2) == 0})
	case 11:
		u.server.Faults(
			identitytest.Fault{Times: 1 + u.r.IntN(10), Delay: u.upTo(5 * time.Second)},
			identitytest.Fault{Times: 1 + u.r.IntN(5), Err: errDead, Committed: u.r.IntN(2) == 0})
	case 12:
		u.server.DropWatches(u.r.IntN(2) == 0)
	case 13:
		if h.life.feed != nil {
			h.life.feed.hangs(u.upTo(2 * worldLiveness))
		} else {
			u.late(h)
		}
	case 14:
		u.edit()
		_ = os.Remove(h.lock) // where there is one
	case 15:
		u.race()
	}
}

// late has the renewals of a member hang, and then the watches of all observers, so that they miss the one that comes through in time.
func (u *universe) late(h *host) {
	u.server.Faults(identitytest.Fault{Client: h.life.client, Times: 1 + u.r.IntN(2), Hang: true})
	u.passes(2*worldTiming().Renew + u.upTo(worldTiming().Renew))
	for _, h := range u.hosts {
		if h.life.feed != nil {
			h.life.feed.hangs(worldLiveness)
		}
	}
	u.passes(u.upTo(worldLiveness))
}

func (u *universe) upTo(d time.Duration) time.Duration { return time.Duration(u.r.Int64N(int64(d))) }

// edit changes a Lease as a person does, or takes it.
func (u *universe) edit() {
	leases := u.server.Client(namespace, admin, nil)
	if all := u.server.Leases(); len(all) > 0 {
		l := all[u.r.IntN(len(all))]
		l.Labels["edited"] = fmt.Sprint(u.r.Uint32())
		if u.r.IntN(3) == 0 {
			l.Spec.HolderIdentity = ptr.To("thief-" + l.Labels["edited"])
		}
		_, _ = leases.Update(u.ctx, l, metav1.UpdateOptions{})
	}
}

// race holds up the next deletion by a collector, and lets a machine that sleeps go on meanwhile.
func (u *universe) race() {
	for _, h := range u.hosts {
		if !h.observes {
			continue
		}
		late := u.upTo(3 * time.Second)
		u.server.Faults(identitytest.Fault{Client: h.life.collector(), Operation: identitytest.Delete, Times: 2, Do: func() {
			for _, h := range u.hosts {
				h.clock.Resume()
			}
			<-time.After(late)
		}})
	}
}
