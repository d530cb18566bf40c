// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/raceshare"
)

// model is what a store should say: the payload that each stream was last acknowledged with, or may have.
type model struct {
	may map[string][]string // "" = absent
	gen map[string]uint64   // the highest generation that was seen
}

// E1 to E5, at random: Puts, Deletes, failing calls, and restarts in any order. What may be read is known at each step, and
// generations never fall. A failure prints the seed, which replays it.
func TestRandomHistoriesKeepTheInvariants(t *testing.T) {
	histories := raceshare.Of(t, 150)
	if testing.Short() {
		histories = 20
	}
	for seed := range uint64(histories) {
		history(t, seed)
	}
}

func history(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	dir := memDir(t)
	m := model{may: map[string][]string{}, gen: map[string]uint64{}}
	spy := newSpy()
	spy.dry = true
	s := openSpied(t, spy, dir, bare())
	for i := range 60 {
		when := fmt.Sprintf("seed %d, step %d", seed, i)
		stream := []string{"a", "b", "d/a", "d/b"}[rnd.IntN(4)]
		step := step{stream: stream, payload: fmt.Sprint(rnd.IntN(3), stream), remove: rnd.IntN(6) == 0}
		if step.remove {
			step.payload = ""
		}
		if rnd.IntN(3) == 0 {
			spy.before = sometimes(rnd)
		}
		was := m.may[stream]
		if was == nil {
			was = []string{""}
		}
		m.may[stream] = apply(t, s, step, was, when)
		spy.before = nil
		if rnd.IntN(8) == 0 {
			mustClose(t, s)
			if rnd.IntN(2) == 0 {
				mustClose(t, openSpied(t, spy, dir, bare())) // E5: opening twice is opening once
			}
			s = openSpied(t, spy, dir, bare())
			wantNoTemps(t, dir)
		}
		m.check(t, s, when)
	}
	mustClose(t, s)
}

// sometimes fails one call in ten.
func sometimes(rnd *rand.Rand) func(call) error {
	return func(call) error {
		if rnd.IntN(10) != 0 {
			return nil
		}
		return []unix.Errno{unix.EIO, unix.ENOSPC, unix.EROFS}[rnd.IntN(3)]
	}
}

func (m model) check(t *testing.T, s *Store, when string) {
	t.Helper()
	for stream, may := range m.may {
		rec, err := s.Read(t.Context(), stream)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s: Read(%q): %v", when, stream, err)
		}
		if !slices.Contains(may, string(rec.Payload)) || len(rec.Damage) != 0 {
			t.Fatalf("%s: Read(%q): got %q, damage %v, want one of %q", when, stream, rec.Payload, rec.Damage, may)
		}
		if err == nil && rec.Generation < m.gen[stream] {
			t.Fatalf("%s: Read(%q): got generation %d after %d", when, stream, rec.Generation, m.gen[stream])
		}
		if err == nil {
			m.gen[stream] = rec.Generation
		}
	}
}
