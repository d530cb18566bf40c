// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// Every error has a class, whatever it is wrapped in.
func TestClassOf(t *testing.T) {
	limited := provider.Errorf(provider.RateLimited, "slow down: %w", io.EOF)
	limited.After = time.Minute
	for _, c := range []struct {
		err   error
		want  provider.Class
		after time.Duration
	}{
		{nil, "", 0},
		{limited, provider.RateLimited, time.Minute},
		{fmt.Errorf("create: %w", limited), provider.RateLimited, time.Minute},
		{provider.Errorf(provider.Unavailable, "create: %w", limited), provider.Unavailable, 0},
		{provider.Errorf(provider.Stockout, "%w", context.Canceled), provider.Stockout, 0},
		{context.DeadlineExceeded, provider.Unavailable, 0},
		{fmt.Errorf("create: %w", context.Canceled), provider.Unavailable, 0},
		{io.EOF, provider.Internal, 0},
	} {
		if class, after := provider.ClassOf(c.err), provider.AfterOf(c.err); class != c.want || after != c.after {
			t.Errorf("%v: class %q and after %v, want %q and %v", c.err, class, after, c.want, c.after)
		}
	}
	if !errors.Is(limited, io.EOF) || limited.Error() != "RateLimited: slow down: EOF" {
		t.Errorf("%v does not show what was wrapped", limited)
	}
}

// What may run, or come to run by itself, is alive: unknown states too.
func TestAlive(t *testing.T) {
	for s, want := range map[provider.State]bool{provider.Pending: true, provider.Running: true, provider.Stopping: true, provider.Broken: true,
		"": true, "Unknown": true, provider.Stopped: false, provider.Retained: false} {
		if got := s.Alive(); got != want {
			t.Errorf("%q is alive: %v, want %v", s, got, want)
		}
	}
	i := provider.Instance{Token: "t", ProviderID: "x:///t", State: provider.Running}
	if got, want := i.Ref(), (provider.Ref{Token: "t", ProviderID: "x:///t"}); got != want {
		t.Errorf("Ref = %+v, want %+v", got, want)
	}
}
