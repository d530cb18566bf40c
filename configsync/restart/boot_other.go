// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package restart

import "time"

// sinceBoot returns 0: no such clock is known here.
func sinceBoot() time.Duration { return 0 }
