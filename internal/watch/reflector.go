// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"time"

	"k8s.io/client-go/tools/cache"
)

// RunReflector keeps a reflector running until ctx ends, with pauses of up to most after each end. The pauses begin anew after a
// run that took longer than most. The reflector's own Run takes no backoff of the caller in older client-go.
func RunReflector(ctx context.Context, reflector *cache.Reflector, most time.Duration) {
	delay := pauses(most)
	for ctx.Err() == nil {
		began := time.Now()
		if err := reflector.ListAndWatchWithContext(ctx); err != nil {
			cache.DefaultWatchErrorHandler(ctx, reflector, err)
		}
		if time.Since(began) > most {
			delay.Reset()
		}
		pause(ctx, delay)
	}
}
