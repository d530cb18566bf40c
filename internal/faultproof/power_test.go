// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/tier"
)

// round is how many power cuts one file system lives through.
const round = 20

// powerCase is one round of power cuts. It is replayed by its seed.
type powerCase struct {
	kind
	subject
	seed  uint64
	depth int // how often the power is cut again while the store recovers, at most
}

// tally is what came of power cuts.
type tally struct {
	cycles, nested, acknowledged int
	lossy, torn                  int      // cycles after which something was broken, and what was whole no more
	broken                       []string // what was
}

func (a *tally) add(b tally) {
	a.cycles, a.nested, a.acknowledged = a.cycles+b.cycles, a.nested+b.nested, a.acknowledged+b.acknowledged
	a.lossy, a.torn = a.lossy+b.lossy, a.torn+b.torn
	a.broken = append(a.broken, b.broken...)
}

// run writes, cuts the power, and looks what is there, again and again on one file system.
func (c powerCase) run(t *testing.T, cycles int) (sum tally) {
	t.Helper()
	rng := random(c.seed, 0)
	v := newVolume(t, c.kind)
	l := newLedger()
	must(t, v.mount())
	must(t, c.prepare(v.store()))
	k, err := c.open(v.store())
	must(t, err)
	for range cycles {
		must(t, c.writeAndCut(v, k, l, rng))
		for range rng.IntN(c.depth + 1) {
			must(t, c.recoverAndCut(v, rng))
			sum.nested++
		}
		must(t, v.mount())
		var broken []string
		k, broken = inspect(c.subject, v.store(), l)
		sum.cycles++
		if len(broken) > 0 {
			sum.lossy++
			sum.torn += countTorn(broken)
			sum.broken = append(sum.broken, broken...)
		}
		if k == nil {
			break
		}
	}
	if k != nil {
		must(t, k.close())
	}
	must(t, v.unmount())
	sum.acknowledged = l.acknowledged
	return sum
}

// writeAndCut lets all streams be written to, cuts the power at an instant, and unmounts what is dead.
func (c powerCase) writeAndCut(v *volume, k keeper, l *ledger, rng *rand.Rand) error {
	b, err := v.breaker()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var off atomic.Bool
	early := make(chan error, len(streams))
	w := writers{keeper: k, deletes: c.deletes, ledger: l, journal: guard{l, &off, early}}
	seed, instant := rng.Uint64(), time.Duration(rng.Int64N(int64(12*time.Millisecond)))
	ended := make(chan struct{})
	go func() { w.run(ctx, seed); close(ended) }()
	<-time.After(instant)
	off.Store(true)
	err = b.cut()
	cancel()
	<-ended
	_ = k.close()
	if unmounting := v.unmount(); err == nil {
		err = unmounting
	}
	select {
	case first := <-early:
		return fmt.Errorf("a write failed before the power was cut: %w", first)
	default:
		return err
	}
}

// errLate is an acknowledgement that a machine without power would not have given.
var errLate = errors.New("acknowledged after the power was cut")

// guard is a journal that notices errors that no power cut explains, and takes no acknowledgement for one that comes after the cut
// began. There is no such thing after a real cut; here, xfs drops what its log holds in memory, and an fsync that is under way at that
// instant finds nothing to be written, and returns success.
type guard struct {
	journal
	off   *atomic.Bool
	early chan<- error
}

func (g guard) done(stream string, v value, err error) {
	off := g.off.Load()
	if err != nil && !off {
		select {
		case g.early <- err:
		default:
		}
	}
	if err == nil && off {
		err = errLate
	}
	g.journal.done(stream, v, err)
}

// recoverAndCut cuts the power while the file system and the store recover from the last cut.
func (c powerCase) recoverAndCut(v *volume, rng *rand.Rand) error {
	if err := v.mount(); err != nil {
		return err
	}
	b, err := v.breaker()
	if err != nil {
		return err
	}
	instant := time.Duration(rng.Int64N(int64(1500 * time.Microsecond)))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if k, err := c.open(v.store()); err == nil {
			_ = k.close()
		}
	}()
	<-time.After(instant)
	err = b.cut()
	<-ended
	if unmounting := v.unmount(); err == nil {
		err = unmounting
	}
	return err
}

// proveOurs runs rounds until there were enough power cuts, and reports them.
func proveOurs(t *testing.T, name string, k kind, bar, depth int) {
	t.Helper()
	var sum tally
	what, got := "cycles", func() int { return sum.cycles }
	if depth > 0 {
		what, got = "recoveries-cut", func() int { return sum.nested }
	}
	for seed := range seeds(t) {
		c := powerCase{kind: k, subject: ours(), seed: seed, depth: depth}
		one := c.run(t, min(round, bar))
		sum.add(one)
		for _, broken := range one.broken {
			t.Errorf("%s\n\t%s", broken, howTo(t, seed))
		}
		if t.Failed() || got() >= bar {
			break
		}
	}
	rest := fmt.Sprintf("acknowledged=%d lost=%d", sum.acknowledged, len(sum.broken))
	report(t, name+"."+k.name, what, got(), bar, rest, len(sum.broken) == 0)
}

// D2: the power is cut at random instants while several streams are written to at once, again and again on the same file system.
// E1 to E7 hold after each cut: what was acknowledged is there, nothing else is but what was under way, no generation falls, opening
// twice gives the same, nothing is damaged, and no temporary file stays.
func TestPowerCutsLoseNothing(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	eachKind(t, []kind{ext4, xfs}, func(t *testing.T, k kind) {
		proveOurs(t, "D2", k, figure(8, 200, 10000), 0)
	})
}

// D4: the power is cut once more, up to three times in a row, while the store recovers from a cut.
func TestPowerCutsDuringRecoveryLoseNothing(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	eachKind(t, []kind{ext4, xfs}, func(t *testing.T, k kind) {
		proveOurs(t, "D4", k, figure(8, 200, 10000), 3)
	})
}

// D2, the other way round: the harness finds the losses of writers that do not fsync the directory.
func TestPowerCutsFindTheLossesOfPeers(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	eachKind(t, []kind{ext4, xfs}, func(t *testing.T, k kind) {
		cycles := figure(4, 40, 400)
		for _, s := range append([]subject{ours()}, peers()...) {
			lossless := s.name == ours().name
			var sum tally
			for seed := range seeds(t) {
				sum.add(powerCase{kind: k, subject: s, seed: seed}.run(t, min(round, cycles)))
				if sum.cycles >= cycles && (lossless || sum.lossy > 0) || sum.cycles >= 10*cycles {
					break
				}
			}
			rest := fmt.Sprintf("acknowledged=%d lossy=%d torn=%d", sum.acknowledged, sum.lossy, sum.torn)
			report(t, "D2."+k.name+"."+s.name, "cycles", sum.cycles, cycles, rest, lossless == (sum.lossy == 0))
		}
	})
}
