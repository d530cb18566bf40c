// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// Every method is seen, under its name, with one of a fixed number of classes.
func TestObserve(t *testing.T) {
	for _, c := range []struct {
		err  error
		want provider.Class
	}{
		{nil, ""},
		{provider.Errorf(provider.Stockout, "none"), provider.Stockout},
		{fmt.Errorf("wrapped: %w", provider.Errorf(provider.NotFound, "none")), provider.NotFound},
		{context.DeadlineExceeded, provider.Unavailable},
		{errors.New("unclassed"), provider.Internal},
		{provider.Errorf("request 4711 failed", "a class of somebody's own"), provider.Internal},
	} {
		for _, m := range methods("c") {
			synctest.Test(t, func(t *testing.T) {
				s := &stub{do: func(context.Context, string, string) error {
					time.Sleep(3 * time.Second)
					return c.err
				}}
				var seen []provider.Call
				p := provider.Observe(s, func(call provider.Call) { seen = append(seen, call) })
				if _, err := m.call(t.Context(), p); !errors.Is(err, c.err) {
					t.Errorf("%s: %v, want %v", m.name, err, c.err)
				}
				if want := (provider.Call{Method: m.name, Class: c.want, Took: 3 * time.Second}); len(seen) != 1 || seen[0] != want {
					t.Errorf("%s with %v: seen %+v, want %+v", m.name, c.err, seen, want)
				}
			})
		}
	}
	s := provider.Provider(&stub{})
	if provider.Observe(s, nil) != s {
		t.Error("Observe without a function is not what it is around")
	}
}

// A call ends at its deadline, as Unavailable; what says more than that is kept.
func TestTimeout(t *testing.T) {
	for _, c := range []struct{ limit, want time.Duration }{{5 * time.Second, 5 * time.Second}, {0, time.Minute}, {-1, time.Minute}} {
		for _, m := range methods("c") {
			synctest.Test(t, func(t *testing.T) {
				s := &stub{do: func(ctx context.Context, _, _ string) error {
					<-ctx.Done()
					return fmt.Errorf("reading: %w", errors.New("connection was closed"))
				}}
				began := time.Now()
				_, err := m.call(t.Context(), provider.Timeout(s, c.limit))
				if took := time.Since(began); took != c.want || provider.ClassOf(err) != provider.Unavailable {
					t.Errorf("%s with %v: %v after %v, want Unavailable after %v", m.name, c.limit, err, took, c.want)
				}
				if want := fmt.Sprintf("%s took longer than %v: reading", m.name, c.want); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q in it", err, want)
				}
			})
		}
	}
}

func TestTimeoutKeepsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := provider.Errorf(provider.Stockout, "none left")
		s := &stub{do: func(ctx context.Context, _, _ string) error {
			<-ctx.Done()
			return known
		}}
		if err := getOf(t, provider.Timeout(s, time.Second), "t"); err == nil || err.Error() != known.Error() {
			t.Errorf("%v, want the Stockout", err)
		}
		own := errors.New("gave up")
		s.do = func(ctx context.Context, _, _ string) error {
			<-ctx.Done()
			return own
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := provider.Timeout(s, time.Hour).Get(ctx, provider.Ref{}); err == nil || err.Error() != own.Error() {
			t.Errorf("%v, want the provider's error: the deadline was the caller's", err)
		}
		s.do = func(context.Context, string, string) error { return own }
		if err := getOf(t, provider.Timeout(s, time.Hour), "t"); err == nil || err.Error() != own.Error() {
			t.Errorf("%v, want the provider's error: no deadline has passed", err)
		}
	})
}
