// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rolloutproof proves package rollout and its controller on a real control plane, on the stage of package rolloutstage. It holds nothing but
// tests:
//
//   - A controller that is killed before and after each of its writes brings a rollout to the same end as one that nobody disturbs.
//   - Two controllers that work at the same time, late in all they read and write, and die at random writes, do so too.
//   - Work that does not come back freezes a rollout until somebody accepts it.
//   - A leader that is frozen in the middle of a write, and thawed when another one leads, breaks no cap.
//   - A fleet lives through a staged rollout, a fatal revision, an abort, nodes that come and go, and a rollback.
//
// With few nodes they are part of every test run; BELAY_ROLLOUT_NODES asks for more. What is drawn is printed as BELAY_ROLLOUT_SEED,
// which draws the same again.
package rolloutproof
