// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package model is the protocol of rollouts as one table and one function, for tests and for the page on the protocol.
//
// [AllTransitions] lists every state, every event, its guard and its writer. [ApplyEvent] makes an event happen by
// the functions of package protocol that production calls, so that the table can be compared with what they do.
package model
