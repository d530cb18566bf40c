// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/checkpoint/checkpointtest"
)

// What a store promises across crashes, E1 to E7 of the requirements on reliability, as a judge of any state: a story notes what
// each call was about to do and what it returned, and a check compares what is on the disk with that.

// begun and ended are the notes of one Put or Delete; seen is that of a Read after a crash: what was read stays.
type (
	begun struct {
		stream string
		value  value
	}
	ended struct {
		stream string
		value  value
		gen    uint64
		err    string // "" = acknowledged, "unsure", "refused"
	}
	seen struct {
		stream string
		value  value
		gen    uint64
	}
)

// value is what a stream holds: a payload, or nothing.
type value struct {
	payload string
	there   bool
}

func (v value) String() string {
	if !v.there {
		return "nothing"
	}
	return fmt.Sprintf("%.20q (%d bytes)", v.payload, len(v.payload))
}

// belief is what a stream may hold, and the generation below which it must not fall.
type belief struct {
	may    []value
	flight []value // of a call that has not returned
	gen    uint64
}

func beliefs(noted []any) map[string]*belief {
	all := map[string]*belief{}
	of := func(stream string) *belief {
		if all[stream] == nil {
			all[stream] = &belief{may: []value{{}}}
		}
		return all[stream]
	}
	for _, n := range noted {
		switch n := n.(type) {
		case begun:
			of(n.stream).flight = []value{n.value}
		case ended:
			of(n.stream).end(n)
		case seen:
			*of(n.stream) = belief{may: []value{n.value}, gen: max(of(n.stream).gen, n.gen)}
		}
	}
	return all
}

func (b *belief) end(n ended) {
	switch n.err {
	case "":
		b.may, b.gen = []value{n.value}, max(b.gen, n.gen)
	case "unsure":
		b.may = append(slices.Clone(b.may), n.value)
	}
	b.flight = nil
}

const place = "/var/lib/agent"

var kept = checkpoint.Options{MachineID: "a machine", Generations: 2, Ballast: -1, MaxStore: 64 << 10}

func openOn(d *checkpointtest.Disk, o checkpoint.Options) (*checkpoint.Store, error) {
	return checkpoint.OpenOnDisk(d, checkpoint.OnDisk{}, place, o)
}

// judge is the Check of every crash of a Store with these options.
func judge(o checkpoint.Options) func(d *checkpointtest.Disk, noted []any) error {
	return func(d *checkpointtest.Disk, noted []any) error {
		j := &judgement{d: d, o: o, all: beliefs(noted)}
		j.o.OnDamage = func(damage checkpoint.Damage) { j.damage = append(j.damage, damage) }
		for _, step := range []func() error{j.recover, j.tidy, j.again} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}
}

type judgement struct {
	d      *checkpointtest.Disk
	o      checkpoint.Options
	all    map[string]*belief
	damage []checkpoint.Damage
	found  map[string]seen
}

// recover is what the next process does: it opens the store and reads. E1 to E4, E6.
func (j *judgement) recover() error {
	s, err := openOn(j.d, j.o)
	if err != nil {
		return fmt.Errorf("Open: %w", err)
	}
	j.found, err = j.read(s)
	if err != nil {
		return err
	}
	for stream, b := range j.all {
		got := j.found[stream]
		if !slices.Contains(b.may, got.value) && !slices.Contains(b.flight, got.value) {
			return fmt.Errorf("E1, E2, E4: stream %q holds %s, want one of %v %v", stream, got.value, b.may, b.flight)
		}
		if got.value.there && got.gen < b.gen {
			return fmt.Errorf("E3: stream %q is at generation %d, %d was acknowledged", stream, got.gen, b.gen)
		}
	}
	for _, stream := range slices.Sorted(maps.Keys(j.found)) {
		j.d.Note(j.found[stream])
	}
	j.d.Stop()
	return s.Close()
}

func (j *judgement) read(s *checkpoint.Store) (map[string]seen, error) {
	found := map[string]seen{}
	for stream := range j.all {
		rec, err := s.Read(context.Background(), stream)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("E6: Read(%q): %w", stream, err)
		}
		if len(rec.Damage) > 0 || len(j.damage) > 0 {
			return nil, fmt.Errorf("E6: a crash alone made damage: %v %v", rec.Damage, j.damage)
		}
		found[stream] = seen{stream, value{string(rec.Payload), err == nil}, rec.Generation}
	}
	return found, nil
}

// tidy looks at the files. E7.
func (j *judgement) tidy() error {
	var size int64
	err := walk(j.d, place, func(name string, info fs.FileInfo) error {
		if strings.HasPrefix(info.Name(), ".tmp-") {
			return fmt.Errorf("E7: temporary file %q after Open", name)
		}
		size += info.Size()
		return nil
	})
	if limit := j.o.MaxStore + 32; err == nil && size > limit { // and the lock file
		return fmt.Errorf("E7: %d bytes in files, the quota is %d", size, limit)
	}
	return err
}

func walk(d *checkpointtest.Disk, dir string, visit func(string, fs.FileInfo) error) error {
	entries, err := d.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() {
			err = walk(d, dir+"/"+e.Name(), visit)
		} else if err == nil {
			err = visit(dir+"/"+e.Name(), info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// again opens what was recovered: E5.
func (j *judgement) again() error {
	s, err := openOn(j.d, j.o)
	if err != nil {
		return fmt.Errorf("E5: Open after Open: %w", err)
	}
	found, err := j.read(s)
	if err != nil {
		return err
	}
	for stream := range found {
		if found[stream] != j.found[stream] {
			return fmt.Errorf("E5: stream %q holds %v after one Open and %v after two", stream, j.found[stream], found[stream])
		}
	}
	return j.further(s)
}

// further writes on: a number that was ever acknowledged or read does not come again. A3.
func (j *judgement) further(s *checkpoint.Store) error {
	for _, stream := range slices.Sorted(maps.Keys(j.found)) {
		if err := s.Put(context.Background(), stream, []byte("after the crash")); err != nil {
			return fmt.Errorf("Put(%q) after a crash: %w", stream, err)
		}
		rec, err := s.Read(context.Background(), stream)
		if err != nil || string(rec.Payload) != "after the crash" {
			return fmt.Errorf("Read(%q) after a crash and a Put: %.20q, %w", stream, rec.Payload, err)
		}
		if was := max(j.found[stream].gen, j.all[stream].gen); rec.Generation <= was {
			return fmt.Errorf("A3: generation %d of stream %q, after %d was acknowledged or read", rec.Generation, stream, was)
		}
	}
	return s.Close()
}
