// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command checkpoint counts its runs in a durable record: a count that was printed is not lost by a power cut. It is made to be copied:
//
//	go run . /var/lib/counter
package main
