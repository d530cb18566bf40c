// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest

import (
	"context"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/evictionapi"
)

// ReconcileSeen makes the pass of a Responder whose watch shows this Eviction.
func (r *Responder) ReconcileSeen(
	ctx context.Context, target drain.PodRef, e *evictionapi.Eviction,
) (time.Duration, error) {
	return r.reconcileOne(ctx, target, e)
}
