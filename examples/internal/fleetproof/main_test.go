// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/rolloutstage"
)

func TestMain(m *testing.M) {
	if code, child := rolloutstage.Main(); child {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// How many nodes there are, for how long chaos lasts, and what replays what is drawn. What the processes make of it is up to their machine.
const (
	nodesEnv = "BELAY_SOAK_NODES"
	timeEnv  = "BELAY_SOAK"
	seedEnv  = "BELAY_SOAK_SEED"
)

const (
	// fewNodes are those of a run that nobody asks more of. It has each fault once.
	fewNodes = 8
	// patience bounds each wait for something to happen, patienceANode adds to it for each node.
	patience, patienceANode = 5 * time.Minute, 2 * time.Second
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// size is how many nodes there are, and for how long chaos lasts; 0 for each fault once.
func size(t *testing.T) (nodes int, chaos time.Duration) {
	t.Helper()
	nodes = fewNodes
	if text := os.Getenv(nodesEnv); text != "" {
		var err error
		if nodes, err = strconv.Atoi(text); err != nil || nodes < fewNodes {
			t.Fatalf("%s=%q: want the number of nodes, %d or more", nodesEnv, text, fewNodes)
		}
	}
	if text := os.Getenv(timeEnv); text != "" {
		var err error
		if chaos, err = time.ParseDuration(text); err != nil || chaos <= 0 {
			t.Fatalf("%s=%q: want a time such as 10m", timeEnv, text)
		}
	}
	return nodes, chaos
}

// draws are those of a test.
func draws(t *testing.T) *rand.Rand {
	t.Helper()
	return rolloutstage.Draws(t, seedEnv, 3)
}
