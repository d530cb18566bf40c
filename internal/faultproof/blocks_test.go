// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/belayproject/belay/internal/tier"
)

// history is what a disk was told while streams were written to, from an empty file system on.
type history struct {
	kind
	subject
	seed   uint64
	base   pages
	events []Event
	place  string // where it was mounted: the journal of a set has absolute paths
}

// record has every stream written to on a recording disk.
func record(t *testing.T, k kind, s subject, seed uint64, each int) history {
	t.Helper()
	r := newRecorder(t, k)
	must(t, r.mount())
	must(t, s.prepare(r.store()))
	var before []Event
	if s.name != ours().name { // their directories are not on trial
		r.call(t, "Log", struct{}{}, &before)
	}
	kp, err := s.open(r.store())
	must(t, err)
	w := writers{keeper: kp, deletes: s.deletes, ledger: newLedger(), journal: both{newLedger(), r}, each: each}
	w.ledger = w.journal.(both).ledger
	errs := w.run(t.Context(), seed)
	must(t, kp.close())
	must(t, errors.Join(errs...))
	must(t, r.unmount())
	h := history{kind: k, subject: s, seed: seed, base: maps.Clone(template(t, k)), place: r.dir}
	r.call(t, "Log", struct{}{}, &h.events)
	for _, e := range h.events[:len(before)] {
		h.base.apply(e.Off, e.Data, keepAll)
	}
	h.events = h.events[len(before):]
	return h
}

func keepAll() bool { return false }

// both is a ledger that gives the values and a disk that logs them.
type both struct {
	ledger *ledger
	disk   journal
}

func (b both) begin(stream string, v value) {
	b.ledger.begin(stream, v)
	b.disk.begin(stream, v)
}

func (b both) done(stream string, v value, err error) {
	b.ledger.done(stream, v, err)
	b.disk.done(stream, v, err)
}

// crash is a state in which a power cut may leave the disk: everything up to a place, but for parts of the writes since
// the last flush that the disk had not come to. Those it does in any order and 4 KiB at a time.
type crash struct {
	upto int
	torn uint64 // 0 = everything is there; else the seed of what is
}

// state builds what is on the disk, and what must be known of it.
func (h history) state(c crash) (pages, *ledger) {
	p, l := maps.Clone(h.base), newLedger()
	flushed := 0
	for i, e := range h.events[:c.upto] {
		if e.Flush {
			flushed = i
		}
	}
	keep := keepAll
	for i, e := range h.events[:c.upto] {
		if c.torn != 0 && i == flushed {
			rng := random(c.torn, uint64(c.upto))
			share := rng.Float64()
			keep = func() bool { return rng.Float64() < share }
		}
		switch {
		case e.Data != nil:
			p.apply(e.Off, e.Data, keep)
		case e.Mark == nil:
		case e.Mark.Done:
			l.done(e.Mark.Stream, value(e.Mark.Value), nil)
		default:
			l.begin(e.Mark.Stream, value(e.Mark.Value))
		}
	}
	return p, l
}

// look mounts a state, opens the store in it, and returns what is broken.
func (h history) look(t *testing.T, v *volume, c crash) []string {
	t.Helper()
	p, l := h.state(c)
	must(t, os.Remove(v.file))
	must(t, p.write(v.file, h.size))
	if err := v.mount(); err != nil {
		return []string{err.Error()}
	}
	defer func() { must(t, v.unmount()) }()
	if !h.there(v, l) {
		return nil
	}
	k, broken := inspect(h.subject, v.store(), l)
	if k == nil {
		return broken
	}
	if err := k.close(); err != nil {
		broken = append(broken, err.Error())
	}
	return broken
}

// there reports whether the store exists; before anything was acknowledged it need not, and is made.
func (h history) there(v *volume, l *ledger) bool {
	_, err := os.Stat(v.store())
	return err == nil || l.acknowledged > 0 || h.name() == ours().name
}

func (h history) name() string { return h.subject.name }

// states gives every block prefix, each with all that was acknowledged by then, and as many states in which the writes
// since the last flush are lost or torn; or a part of all, evenly spread.
func (h history) states(most int) (all []crash) {
	rng := random(h.seed, 99)
	for i, e := range h.events {
		if e.Data != nil {
			all = append(all, crash{upto: i}, crash{upto: i + 1, torn: rng.Uint64() | 1})
		}
	}
	all = append(all, crash{upto: len(h.events)})
	if most == 0 || most >= len(all) {
		return all
	}
	part := make([]crash, 0, most)
	for i := range most {
		part = append(part, all[i*len(all)/most])
	}
	return part
}

// replayed is what came of the states of histories.
type replayed struct {
	prefixes, torn int // states, the latter with writes lost and torn
	lossy          int // states in which something is broken
	unwhole        int // records that nobody put
	broken         []string
}

func (h history) replay(t *testing.T, most int, sum *replayed) {
	t.Helper()
	v := newVolume(t, h.kind)
	v.dir = h.place
	for _, c := range h.states(most) {
		broken := h.look(t, v, c)
		if c.torn == 0 {
			sum.prefixes++
		} else {
			sum.torn++
		}
		if len(broken) == 0 {
			continue
		}
		sum.lossy++
		sum.unwhole += countTorn(broken)
		for _, b := range broken {
			sum.broken = append(sum.broken, fmt.Sprintf("state %+v of %d events: %s", c, len(h.events), b))
		}
		h.keep(v, c)
	}
}

// keep saves the image of a state in which something is lost, where the environment names a directory for such.
func (h history) keep(v *volume, c crash) {
	if dir := os.Getenv("BELAY_FAULTS_KEEP"); dir != "" && h.name() == ours().name {
		p, _ := h.state(c)
		check(p.write(filepath.Join(dir, fmt.Sprintf("%s-%d-%d-%d.img", v.name, h.seed, c.upto, c.torn)), h.size))
	}
}

// D3: the disk is brought to every point of its history, and to as many at which writes that no flush had confirmed are
// lost, reordered, and torn at 4 KiB. In each, the file system mounts, the store opens, and E1 to E7 hold.
func TestEveryBlockOfAHistoryMayBeTheLast(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	eachKind(t, []kind{ext4, xfs, btrfs}, func(t *testing.T, k kind) {
		bar := figure(30, map[string]int{"ext4": 400, "xfs": 200, "btrfs": 200}[k.name], 10000)
		var sum replayed
		for seed := range seeds(t) {
			h := record(t, k, ours(), seed, figure(2, 4, 8))
			before := len(sum.broken)
			h.replay(t, figure(bar, 0, 0), &sum)
			for _, broken := range sum.broken[before:] {
				t.Errorf("%s\n\t%s", broken, howTo(t, seed))
			}
			if t.Failed() || sum.prefixes+sum.torn >= bar {
				break
			}
		}
		rest := fmt.Sprintf("prefixes=%d torn=%d lost=%d", sum.prefixes, sum.torn, len(sum.broken))
		report(t, "D3."+k.name, "states", sum.prefixes+sum.torn, bar, rest, len(sum.broken) == 0)
	})
}

// D3, the other way round: the harness finds the losses of writers that do not fsync the directory, and what one tears
// that writes over the file that is there.
func TestBlocksFindTheLossesOfPeers(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	eachKind(t, []kind{ext4, xfs, btrfs}, func(t *testing.T, k kind) {
		bar := figure(20, 50, 1000)
		subjects := append([]subject{ours()}, peers()...)
		if k.name != btrfs.name { // which writes no block over another one
			subjects = append(subjects, inPlace())
		}
		for _, s := range subjects {
			lossless := s.name == ours().name
			var sum replayed
			for seed := range seeds(t) {
				record(t, k, s, seed, 4).replay(t, bar, &sum)
				states := sum.prefixes + sum.torn
				if states >= bar && (lossless || sum.lossy > 0) || states >= 10*bar {
					break
				}
			}
			rest := fmt.Sprintf("lossy=%d torn=%d", sum.lossy, sum.unwhole)
			report(t, "D3."+k.name+"."+s.name, "states", sum.prefixes+sum.torn, bar, rest, lossless == (sum.lossy == 0))
		}
	})
}
