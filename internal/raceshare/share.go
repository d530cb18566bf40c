// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package raceshare

import (
	"os"
	"testing"
)

const (
	// Attribute is what a test has that has left out something under the race detector.
	Attribute = "raceshare"
	// Every is how many cases there are for one that is done under the race detector.
	Every = 10
	// env, in the environment, is "all" if nothing is to be left out.
	env = "BELAY_RACE"
)

// Of returns how many of n cases a test is to do: all of them, or under the race detector one in ten, rounded up.
func Of[N int | uint64](t testing.TB, n N) N {
	t.Helper()
	step := N(Step(t))
	return n/step + min(1, n%step)
}

// RacePrograms reports whether a test builds the programs that it starts with the race detector. It does where
// nothing is left out, as in make race: agents and controllers are processes of their own, whose packages make test
// runs under the detector as well.
func RacePrograms() bool { return race && os.Getenv(env) == "all" }

// Step returns one, or under the race detector ten: the distance from one case to the next for a test that goes through numbered ones.
func Step(t testing.TB) int {
	t.Helper()
	if !race || os.Getenv(env) == "all" {
		return 1
	}
	t.Attr(Attribute, "one in ten")
	return Every
}
