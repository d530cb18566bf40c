// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	levelVar = "BELAY_FAULTS"
	seedVar  = "BELAY_FAULTS_SEED"
)

// figure takes the figure for this run: a part of the work with every go test, all of it, or the long one.
func figure[T any](part, full, long T) T {
	switch os.Getenv(levelVar) {
	case "":
		return part
	case "long":
		return long
	default:
		return full
	}
}

func whole() bool { return os.Getenv(levelVar) != "" }

// seeds gives one seed a case, without an end; or only the one that is to be replayed.
func seeds(t *testing.T) func(yield func(uint64) bool) {
	t.Helper()
	if text := os.Getenv(seedVar); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s must be a decimal number: %v", seedVar, err)
		}
		return func(yield func(uint64) bool) { yield(seed) }
	}
	first := uint64(time.Now().UnixNano()) / 1000 * 1000
	t.Logf("seeds from %d on", first)
	return func(yield func(uint64) bool) {
		for seed := first; yield(seed); seed++ {
		}
	}
}

func replaying() bool { return os.Getenv(seedVar) != "" }

// random gives the generator number stream of a seed.
func random(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// howTo says how to run a case again.
func howTo(t *testing.T, seed uint64) string {
	return fmt.Sprintf("seed %d; again: %s=1 %s=%d go test -C internal/faultproof -count=1 -v -run '^%s$' .",
		seed, levelVar, seedVar, seed, strings.ReplaceAll(t.Name(), "/", "$/^"))
}

// report logs what a test reached. The bar is that of the first figure, and everything in none must be 0.
func report(t *testing.T, name, what string, got, bar int, rest string, good bool) {
	t.Helper()
	good = good && (got >= bar || replaying())
	verdict := "ok"
	if !good {
		verdict = "SHORT"
	}
	t.Logf("fault %s %s=%d %s bar=%d %s", name, what, got, rest, bar, verdict)
	if !good {
		t.Errorf("%s is short", name)
	}
}
