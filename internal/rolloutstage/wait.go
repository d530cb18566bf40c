// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
)

// Draws are those of a test: a seed is printed as the variable env, which draws the same again; stream keeps tests apart that have the same seed.
func Draws(t testing.TB, env string, stream uint64) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(env); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s=%q: want a number", env, text)
		}
	}
	t.Logf("%s=%d draws the same", env, seed)
	return rand.New(rand.NewPCG(seed, stream))
}

// Eventually fails the test where done goes on returning an error; rule is what the test protects.
func Eventually(t testing.TB, rule string, within time.Duration, done func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	pace := testproc.NewPace()
	var last error
	for {
		err := done(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err // not that time is up
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: after %s: %v", rule, within, last)
		case <-pace.Next():
		}
	}
}
