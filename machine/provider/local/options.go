// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import "time"

// scheme is that of ProviderIDs: "local:///token", or "local:///zone/token".
const scheme = "local"

// Options are what a [Provider] works with.
type Options struct {
	// Root is the directory that has all machines, and this provider alone. It is made if it is not there. Whoever may write to it has the rights of
	// this process: its mode is 0700.
	Root string
	// Zone is a part of each ProviderID, and must stay. It tells hosts apart; "" is none.
	Zone string
	// ConsoleLimit is how many bytes a console may have before it is cut; 0 is 1 MiB.
	ConsoleLimit int64
	// Now is the time; nil is time.Now.
	Now func() time.Time
}
