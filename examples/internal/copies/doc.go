// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package copies tests that the small programs of examples, and a main of a user's own over each app, build in an empty folder outside of the
// repository.
package copies
