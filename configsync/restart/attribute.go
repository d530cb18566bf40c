// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"time"

	"github.com/belayproject/belay/lkg"
)

// attributeTimeout is how long an end of a child waits for Options.Attribute.
const attributeTimeout = 5 * time.Second

// attributeExit returns what attribute makes of an end. It is e where attribute is nil, panics or takes too long: a
// start must not hang on it.
func attributeExit(ctx context.Context, attribute func(context.Context, lkg.Exit) lkg.Exit, e lkg.Exit) lkg.Exit {
	if attribute == nil {
		return e
	}
	ctx, cancel := context.WithTimeout(ctx, attributeTimeout)
	defer cancel()
	done := make(chan lkg.Exit, 1)
	go func() {
		x := e
		defer func() {
			if recover() != nil {
				x = e
			}
			done <- x
		}()
		x = attribute(ctx, e)
	}()
	select {
	case x := <-done:
		return x
	case <-ctx.Done():
		return e
	}
}
