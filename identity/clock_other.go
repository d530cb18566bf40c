// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package identity

import "time"

func elapsed(start time.Time) time.Duration { return time.Since(start) }
