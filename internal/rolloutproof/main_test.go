// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(childEnv); file != "" {
		os.Exit(childMain(file))
	}
	os.Exit(m.Run())
}

// nodesEnv is for how many nodes there are; a proof in full has 50.
const nodesEnv = "BELAY_ROLLOUT_NODES"

// fleetSize is how many nodes a test has, few unless it is asked for more.
func fleetSize(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv(nodesEnv)
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want the number of nodes, 1 or more", nodesEnv, text)
	}
	return n
}

// patience bounds each wait for the servers.
const patience = 2 * time.Minute

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually fails the test where done goes on returning an error; rule is what the test protects.
func eventually(t *testing.T, rule string, done func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := done(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: after %s: %v", rule, patience, err)
		case <-ticker.C:
		}
	}
}
