// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

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
			of(n.stream).begin(n)
		case ended:
			of(n.stream).end(n)
		case seen:
			*of(n.stream) = belief{may: []value{n.value}, gen: max(of(n.stream).gen, n.gen)}
		}
	}
	return all
}

// begin has a call in flight. One that was is that of a process which was killed: what it wrote may be there for ever.
func (b *belief) begin(n begun) {
	b.may, b.flight = slices.Concat(b.may, b.flight), []value{n.value}
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

const place = "/lib/agent"

var kept = checkpoint.Options{MachineID: "a machine", Generations: 2, Ballast: -1, MaxStore: room(len(streams))}

// room is a quota that takes two records of each stream and one to come.
func room(streams int) int64 { return 360 * int64(2*streams+1) }

func openOn(d *checkpointtest.Disk, o checkpoint.Options) (*checkpoint.Store, error) {
	return checkpoint.OpenOnDisk(d, checkpoint.OnDisk{}, place, o)
}

// judge makes the Check of every crash of a Store with these options. What comes after recovery depends on nothing but what that
// left, so it is looked at once.
func judge(o checkpoint.Options) func(d *checkpointtest.Disk, noted []any) error {
	var mu sync.Mutex
	known := map[string]bool{}
	return func(d *checkpointtest.Disk, noted []any) error {
		j := &judgement{d: d, o: o, all: beliefs(noted)}
		j.o.OnDamage = func(damage checkpoint.Damage) { j.damage = append(j.damage, damage) }
		if err := j.recover(); err != nil {
			return err
		}
		left, err := j.tidy()
		mu.Lock()
		was := known[left]
		known[left] = true
		mu.Unlock()
		if err != nil || was {
			return err
		}
		for _, step := range []func() error{j.readOnly, j.again} {
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
	if err := j.holds(s); err != nil {
		return err
	}
	for _, stream := range slices.Sorted(maps.Keys(j.found)) {
		j.d.Note(j.found[stream])
	}
	j.d.Stop()
	return s.Close()
}

// holds reads every stream and compares it with what was noted.
func (j *judgement) holds(s *checkpoint.Store) (err error) {
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
	return nil
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

// tidy looks at the files, E7, and gives all that is on the disk and was promised, in few bytes.
func (j *judgement) tidy() (left string, err error) {
	var size int64
	sum := sha256.New()
	err = walk(j.d, place, func(name string, info fs.FileInfo) error {
		if strings.HasPrefix(info.Name(), ".tmp-") {
			return fmt.Errorf("E7: temporary file %q after Open", name)
		}
		if !strings.HasPrefix(info.Name(), ".floor.") { // see Options.MaxStore
			size += info.Size()
		}
		data := make([]byte, info.Size())
		f, err := j.d.OpenFile(name, os.O_RDONLY, 0)
		if err == nil {
			_, err = f.ReadAt(data, 0)
		}
		fmt.Fprintf(sum, "%s %d %s", name, len(data), data)
		return err
	})
	for _, stream := range slices.Sorted(maps.Keys(j.all)) {
		fmt.Fprint(sum, stream, j.all[stream].gen, j.found[stream])
	}
	if limit := j.o.MaxStore + 32; err == nil && size > limit { // and the lock file
		err = fmt.Errorf("E7: %d bytes in files, the quota is %d", size, limit)
	}
	return string(sum.Sum(nil)), err
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

// readOnly opens what was recovered on a disk that takes no change: E9.
func (j *judgement) readOnly() error {
	for _, errno := range []syscall.Errno{syscall.EROFS, syscall.ENOSPC} {
		j.d.Inject(checkpointtest.Fault{Err: errno, Forever: true, Calls: checkpointtest.Changes})
		s, err := openOn(j.d, j.o)
		if err != nil {
			return fmt.Errorf("E9: Open on a disk that says %w: %w", errno, err)
		}
		if err := j.same(s, "E9"); err != nil {
			return err
		}
		j.d.Inject(checkpointtest.Fault{})
	}
	return nil
}

// same reads what was read before.
func (j *judgement) same(s *checkpoint.Store, rule string) error {
	found, err := j.read(s)
	if err != nil {
		return err
	}
	for stream := range found {
		if found[stream] != j.found[stream] {
			return fmt.Errorf("%s: stream %q held %v after the first Open, and holds %v", rule, stream, j.found[stream], found[stream])
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
	if err := j.same(s, "E5"); err != nil {
		return err
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
