// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eventnote bounds the notes of Events. The API server refuses an Event of events.k8s.io/v1 with a longer note,
// and recorders of client-go do not try it again: the Event is lost.
package eventnote
