// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/internal/mutate"
	"github.com/belayproject/belay/internal/raceshare"
)

const (
	// proofSeeds is how many worlds a run plays that asks for no other number, with proofSeedsEnv, as make identity-proof does: under the race
	// detector a share of them. Of a mutant there are more: the hardest to catch shows in one world of 300.
	proofSeeds    = 500
	mutantSeeds   = 10 * proofSeeds
	proofSeedsEnv = "BELAY_IDENTITY_SEEDS"
	// proofSeedEnv names one world to be played, replays times: what a member draws by chance is not part of the seed.
	proofSeedEnv = "BELAY_IDENTITY_SEED"
	replays      = 100
)

// TestNobodyAliveIsCollected plays worlds of members, duplicates and observers with collectors, each on a machine with a clock of its own: up to
// ten years off, at rates from 0.95 to 1.05. Processes are killed, stopped and started again, machines are suspended, requests and answers are
// lost or late, watches end, hang and start anew, the server is away, somebody edits Leases and removes lock files. In all of them:
//
//   - P1: no Lease is deleted by a collector that was written less than GCAfter of the collector's own time ago (R-ID-10, R-ID-12);
//   - no Lease of a dead member is there for ever (R-ID-09), and who lives has its Lease again when all is well (R-ID-15);
//   - I1: a name has one holder at a time; I2: its epochs grow;
//   - I6: no view calls a member lost that still holds in that epoch, or whose work goes on in it (R-ID-12);
//   - I3, I7: who writes on top of a version or deletes it has seen it, and renews nothing of another holder;
//   - I8: Run returns in time after its context has ended (R-ID-16).
func TestNobodyAliveIsCollected(t *testing.T) {
	var total figures
	seed := uint64(0)
	defer func() {
		t.Log(total)
		if t.Failed() {
			t.Logf("%s=%d plays the world %d times", proofSeedEnv, seed, replays)
		}
	}()
	for _, seed = range seedsOf(t) { // a bubble that fails ends the test
		synctest.Test(t, func(t *testing.T) { total.add(playWorld(t, seed)) })
	}
	_, one := os.LookupEnv(proofSeedEnv) // of which nobody knows how much happens in it
	if !one && total.worlds >= 100 && (total.collected < total.worlds || total.lost < total.worlds/2 || total.holds < 5*total.worlds || total.raced < total.worlds/40) {
		t.Errorf("too little has happened to show anything: %v", total)
	}
}

// seedsOf returns the seeds of the worlds to be played.
func seedsOf(t *testing.T) []uint64 {
	t.Helper()
	number := func(env string, otherwise uint64) uint64 {
		text, ok := os.LookupEnv(env)
		if !ok {
			return otherwise
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", env, err)
		}
		return n
	}
	if _, ok := os.LookupEnv(proofSeedEnv); ok {
		seeds := make([]uint64, replays)
		for i := range seeds {
			seeds[i] = number(proofSeedEnv, 0)
		}
		return seeds
	}
	count := raceshare.Of[uint64](t, proofSeeds)
	if mutate.Running() {
		count = mutantSeeds
	}
	first := rand.Uint64() >> 1
	seeds := make([]uint64, number(proofSeedsEnv, count))
	for i := range seeds {
		seeds[i] = first + uint64(i)
	}
	return seeds
}
