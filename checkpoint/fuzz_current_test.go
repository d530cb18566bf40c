// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/checkpoint/checkpointtest"
)

// kinds are what a fuzzed directory may hold for a generation.
var kinds = []string{"", "whole", "truncated", "flipped", "empty", "foreign", "newer", "aside", "unsure", "temp", "floor"}

// lay makes a directory out of bytes, two for each file: a generation of stream "a" from 1 to 9, and what lies there. It returns
// what a reader has to make of it: the highest generation that is whole, or which error.
func lay(d *checkpointtest.Disk, script []byte) (gen uint64, ok bool, want error) {
	if d.Mkdir("/s", 0o700) != nil {
		return 0, false, nil
	}
	there := map[uint64]string{}
	for i := 0; i+1 < len(script) && i < 40; i += 2 {
		g, kind := uint64(script[i]%9)+1, kinds[int(script[i+1])%len(kinds)]
		name, data, counts := fileOf(kind, g, int(script[i]), int(script[i+1]))
		if name == "" {
			continue
		}
		f, err := d.OpenFile("/s/"+name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			continue // there is one
		}
		if _, err := f.Write(data); err != nil || f.Close() != nil {
			return 0, false, nil
		}
		// What was set aside as damaged stays damage beside what belongs elsewhere; any other file of the number says more.
		is := there[g]
		if counts && (is == "" || is == "aside" && kind != "foreign" || is == "foreign" && kind == "aside") {
			there[g] = kind
		}
	}
	gen, want = choose(there)
	return gen, true, want
}

// fileOf makes a file, and says whether it counts as one of the generation.
func fileOf(kind string, g uint64, a, b int) (name string, data []byte, counts bool) {
	name = fmt.Sprintf("a.%016x", g)
	whole := checkpoint.Encode("a", g, "m", fmt.Sprint("payload ", g))
	switch kind {
	case "whole":
		return name, whole, true
	case "truncated":
		return name, whole[:len(whole)-1-a%len(whole)], true
	case "flipped":
		whole[b*7%len(whole)] ^= 1
		return name, whole, true
	case "empty":
		return name, nil, true
	case "foreign":
		return name, checkpoint.Encode("a", g, "another", "theirs"), true
	case "newer":
		return name, checkpoint.EncodeNewer(), true
	case "aside":
		return name + ".damaged-digest", whole, true
	case "unsure":
		return "a.unsure", nil, false
	case "temp":
		return fmt.Sprint(".tmp-", g), whole, false
	case "floor":
		return fmt.Sprintf(".floor.%016x", g), nil, false
	}
	return "", nil, false
}

// choose is the naive reader.
func choose(there map[uint64]string) (uint64, error) {
	var err error = fs.ErrNotExist
	for g := uint64(9); g > 0; g-- {
		switch there[g] {
		case "whole":
			return g, nil
		case "newer":
			return 0, checkpoint.ErrTooNew
		case "", "foreign":
		default:
			err = checkpoint.ErrCorrupt
		}
	}
	return 0, err
}

// FuzzCurrent: of whatever lies in a directory, the Store chooses the generation that a naive reader chooses, and again after a
// restart; what comes next has a number that none had.
func FuzzCurrent(f *testing.F) {
	for kind := range kinds {
		f.Add([]byte{1, 1, 2, byte(kind)})
		f.Add([]byte{1, byte(kind), 2, byte(kind), 8, byte(kind)})
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		d := checkpointtest.NewDisk()
		gen, ok, want := lay(d, script)
		if !ok {
			return
		}
		o := checkpoint.Options{MachineID: "m", Ballast: -1}
		for range 2 {
			s, err := checkpoint.OpenOnDisk(d, checkpoint.OnDisk{}, "/s", o)
			if err != nil {
				t.Fatal(err)
			}
			rec, err := s.Read(context.Background(), "a")
			confirmed := fmt.Sprint("payload ", gen)
			if want == nil && (err != nil || string(rec.Payload) != confirmed) || want != nil && !errors.Is(err, want) {
				t.Fatalf("Read: got %q of generation %d, %v, want generation %d, %v", rec.Payload, rec.Generation, err, gen, want)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		further(t, d, o)
	})
}

func further(t *testing.T, d *checkpointtest.Disk, o checkpoint.Options) {
	t.Helper()
	s, err := checkpoint.OpenOnDisk(d, checkpoint.OnDisk{}, "/s", o)
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]bool{}
	err = walk(d, "/s", func(name string, _ fs.FileInfo) error {
		before[name] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(context.Background(), "a", []byte("next")); errors.Is(err, checkpoint.ErrTooNew) {
		return
	} else if err != nil {
		t.Fatal(err)
	}
	rec, err := s.Read(context.Background(), "a")
	if err != nil || string(rec.Payload) != "next" || len(rec.Damage) > 0 {
		t.Fatalf("Read after a Put: got %q, damage %v, %v", rec.Payload, rec.Damage, err)
	}
	for _, tail := range []string{"", ".damaged-digest", ".foreign"} {
		if name := fmt.Sprintf("/s/a.%016x%s", rec.Generation, tail); before[name] {
			t.Fatalf("generation %d is used again", rec.Generation)
		}
	}
}
