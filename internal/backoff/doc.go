// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backoff has the one exponential backoff and the one jitter of this module.
//
// A delay begins at first, doubles with each failure, and stays at most. Neither limit is exceeded by an overflow, however
// many failures there are. A first that exceeds most is cut to most.
//
// [Backoff] counts failures in a row, and waits; [Sleep] waits for any delay, or for the end of a context. [Next] and
// [After] are for callers that keep the last delay, or the number of failures, in a record of their own. None of them adds jitter: [Jitter] does, by factors that the caller names.
//
// The package imports the standard library only, so leaves may import it.
package backoff
