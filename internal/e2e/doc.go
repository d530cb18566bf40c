// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the reference agent as a process in tests, beside a child and an API server that are processes too.
//
// # Promise
//
//   - A process that a test started is gone when the test ends, and when the test binary is killed.
//   - Nothing sleeps: [Eventually] asks again until the answer is right or the time is up, and then says what the last answer was.
//   - What the processes wrote is shown when the test fails, and only then.
//
// # Concurrency
//
// The helpers belong to the goroutine of the test, as testing.TB does.
package e2e
