// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"time"
	_ "unsafe" // for go:linkname

	_ "k8s.io/client-go/tools/cache" // has the variable, and sets it before this package is used
)

// neverExitWatch is the channel on which client-go before 0.35 waits for the resync of an informer that has none.
// It is made outside of every synctest bubble, so that the time of a bubble with an informer never goes on. Newer
// releases wait on a nil channel and have no such variable: there this one is not used.
//
//go:linkname neverExitWatch k8s.io/client-go/tools/cache.neverExitWatch
var neverExitWatch <-chan time.Time

// LetBubblesIdle lets informers run in synctest bubbles with each supported release of client-go. [Shared.Main] calls
// it; a package that has no server calls it in its TestMain.
func LetBubblesIdle() { neverExitWatch = nil }
