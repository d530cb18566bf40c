// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package raceshare lets tests that compute for long do a part of it under the race detector, and all of it without.
//
// The detector makes code 5 to 20 times slower, and finds nothing in a search or a simulation that has one goroutine. So such a test
// asks [Of] for the number of its seeds, or [Step] for the distance of its places: one in ten under the detector, all without it. It then
// has an attribute, by which internal/archtest/cmd/gotest counts it. make searches runs the tests without the detector and leaves nothing
// out; CI runs it each night.
//
// A test that proves by how much it has seen ("at least 20 of each kind") demands all of it where Step is one, and its share, or nothing, else.
//
// With BELAY_RACE=all in the environment, as make race sets it, all is done under the race detector too, and the
// programs that tests build have it: see [RacePrograms].
package raceshare
