// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package play plays the story on real parts: it does what each step asks, looks at every node several times a second, shows what it
// sees, and goes on when nothing is missing any more, or gives up at a deadline and says what was not seen.
package play
