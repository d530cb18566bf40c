// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report makes of what was seen the reports that are printed: as text for people, on 120 columns, and as JSON for programs.
//
// Reports are pure functions of objects and a time. Fields of the JSON are only added, never renamed or given another meaning. Times are
// RFC 3339, durations are seconds.
package report
