// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

// A referee watches over the invariants: at most one hold of the name at a time (I1), and epochs that grow (I2).
type referee struct {
	mu      sync.Mutex
	holding string
	last    uint64
	holds   int
	faults  []string
}

func (r *referee) enter(who string, e identity.Epoch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holding != "" {
		r.faults = append(r.faults, fmt.Sprintf("I1: %s holds while %s does", who, r.holding))
	}
	if e.Number <= r.last {
		r.faults = append(r.faults, fmt.Sprintf("I2: epoch %d after %d", e.Number, r.last))
	}
	r.holding, r.last = who, e.Number
	r.holds++
}

func (r *referee) leave(who string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holding == who {
		r.holding = ""
	}
}

// TestOneHolderAtATime plays random lives of four processes with one name, on clocks with any offset whose rates differ by a tenth, that
// are cut off, suspended, killed and started again, on a server that is slow, fails, and loses answers, beside somebody who edits the
// Lease. (Whoever deletes the Lease of a living member lets the next one in: that is no honest member.) It looks after I1, I2, I3 and I7.
func TestOneHolderAtATime(t *testing.T) {
	holds := 0
	for seed := range uint64(40) {
		inBubble(t, func(b *bed) { holds += play(b, rand.New(rand.NewPCG(7, seed)), seed) })
	}
	if holds < 200 {
		t.Errorf("the name was held %d times in all: too few to show anything", holds)
	}
}

// A player is a host whose process is started again whenever it has ended.
type player struct {
	b       *bed
	r       *rand.Rand
	host    string
	clock   *identitytest.Clock
	referee *referee
	client  string
	cancel  context.CancelFunc
	done    chan struct{}
}

// start begins a process. Work is as long as its context, by the clock of the player.
func (p *player) start(n int) {
	p.client = fmt.Sprintf("%s-%d", p.host, n)
	spec := goodSpec(p.host)
	spec.OnDuplicate = identity.WaitOnDuplicate
	spec.KeepOnStop = p.r.IntN(3) == 0
	m, err := identity.New(p.b.server.Client(namespace, p.client, p.clock), spec, identity.Options{Clock: p.clock})
	if err != nil {
		p.b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(p.b.Context())
	p.cancel, p.done = cancel, make(chan struct{})
	who, done := p.client, p.done
	go func() {
		defer close(done)
		_ = m.Run(ctx, func(ctx context.Context, e identity.Epoch) error {
			if now, ok := m.Epoch(); !ok || now != e { // a fenced actor asks before it acts
				return nil
			}
			p.referee.enter(who, e)
			defer p.referee.leave(who)
			for ctx.Err() == nil {
				if _, ok := m.Epoch(); !ok {
					return nil
				}
				c, stop := p.clock.Timer(100 * time.Millisecond)
				select {
				case <-ctx.Done():
				case <-c:
				}
				stop()
			}
			return nil
		})
	}()
}

func play(b *bed, r *rand.Rand, seed uint64) int {
	ref := &referee{}
	players := make([]*player, 4)
	for i := range players {
		rate := 0.95 + 0.1*r.Float64()
		offset := time.Duration(r.Int64N(int64(200000*time.Hour))) - 100000*time.Hour
		players[i] = &player{b: b, r: r, host: fmt.Sprintf("h%d", i), clock: identitytest.NewClock(offset, rate), referee: ref}
		players[i].start(0)
	}
	for n := range 60 {
		b.passes(time.Duration(r.Int64N(int64(40 * time.Second))))
		disturb(b, r, players[r.IntN(len(players))], n+1)
	}
	b.server.ClearFaults()
	for _, p := range players {
		p.cancel()
	}
	for _, p := range players {
		<-p.done
	}
	for _, f := range ref.faults {
		b.Errorf("seed %d: %s", seed, f)
	}
	checkRequests(b, seed)
	return ref.holds
}

// disturb does one thing to a player, to the server or to the Lease.
func disturb(b *bed, r *rand.Rand, p *player, n int) {
	all := -1
	switch r.IntN(10) {
	case 0: // cut off for a while
		b.server.Faults(identitytest.Fault{Client: p.client, Times: 1 + r.IntN(8), Hang: true, Committed: r.IntN(2) == 0})
	case 1, 2: // killed, and started again
		b.server.Faults(identitytest.Fault{Client: p.client, Times: all, Err: errDead})
		p.cancel()
		<-p.done
		p.start(n)
	case 3: // stopped, and started again
		p.cancel()
		<-p.done
		p.start(n)
	case 4: // a slow server, that fails now and then
		b.server.Faults(
			identitytest.Fault{Times: r.IntN(20) + 1, Delay: time.Duration(r.Int64N(int64(12 * time.Second)))},
			identitytest.Fault{Times: r.IntN(5) + 1, Err: errDead, Committed: r.IntN(2) == 0})
	case 5:
		b.server.Stop()
		b.passes(time.Duration(r.Int64N(int64(time.Minute))))
		b.server.Start()
	case 6:
		for _, l := range b.server.Leases() {
			l.Labels = map[string]string{"edit": fmt.Sprint(n)}
			_, _ = b.admin().Update(b.Context(), l, metav1.UpdateOptions{})
		}
	}
}

// checkRequests is I3 and I7: who wrote on top of a version or deleted it had seen it, and renewed nothing of another holder.
func checkRequests(b *bed, seed uint64) {
	for _, q := range b.server.Requests() {
		if q.Client == "admin" {
			continue
		}
		switch q.Operation {
		case identitytest.Update:
			if q.Lease.ResourceVersion == "" || q.Lease.UID == "" {
				b.Errorf("seed %d: I3: an update without a version: %v", seed, q.Lease)
			}
		case identitytest.Delete:
			if q.Preconditions == nil || q.Preconditions.UID == nil || q.Preconditions.ResourceVersion == nil {
				b.Errorf("seed %d: I7: a deletion without preconditions: %+v", seed, q.Preconditions)
			}
		}
	}
}

// TestLeaseThatKeepsChangingHands is I2 with deletions: each hold has a greater number, whoever deletes what in between.
func TestLeaseThatKeepsChangingHands(t *testing.T) {
	inBubble(t, func(b *bed) {
		last := uint64(0)
		p := b.process("h")
		for i := range 50 {
			p.start()
			b.passes(time.Minute)
			e, held := p.member.Epoch()
			if !held || e.Number <= last {
				b.Fatalf("I2: held=%v, epoch %d after %d", held, e.Number, last)
			}
			last = e.Number
			switch i % 4 {
			case 0:
				_ = p.stop()
				p = b.process("h")
			case 1:
				p.kill()
				p = b.process("h")
			case 2:
				if version, _ := strconv.ParseUint(b.lease().ResourceVersion, 10, 64); version >= e.Number {
					_ = b.admin().Delete(b.Context(), name, metav1.DeleteOptions{})
				}
				_ = p.stop()
				p = b.process("h")
			case 3: // a restore into a cluster whose versions begin anew
				b.server.Restore(b.server.Leases())
				p.kill()
				p = b.process("h")
			}
		}
	})
}
