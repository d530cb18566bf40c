// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faketerm plays a terminal for tests of what draws on one.
package faketerm
