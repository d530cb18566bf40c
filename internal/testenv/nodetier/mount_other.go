// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package nodetier

// bindShared is never reached: [Supported] refuses every system but Linux.
func bindShared(string) error { return ErrUnsupported }
