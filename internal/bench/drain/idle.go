// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
)

// idle is S8.
func idle(ctx context.Context, b *bench) error { return nil }
