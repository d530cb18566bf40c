// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package raceshare

// race says that the race detector is on.
const race = false
