// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

func getOf(t *testing.T, p provider.Provider, token string) error {
	t.Helper()
	_, err := p.Get(t.Context(), provider.Ref{Token: token})
	return err
}

// arrivals is a stub that notes when each token has come.
func arrivals() (*stub, func() map[string]time.Duration) {
	began := time.Now()
	var mu sync.Mutex
	at := map[string]time.Duration{}
	s := &stub{do: func(_ context.Context, _, token string) error {
		mu.Lock()
		defer mu.Unlock()
		at[token] = time.Since(began)
		return nil
	}}
	return s, func() map[string]time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return at
	}
}

func near(a, b time.Duration) bool { return (a - b).Abs() < time.Microsecond }

// R-MA-30: a burst goes through, the rest in the order in which it came, at the rate.
func TestRateLimitPaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := arrivals()
		p := provider.RateLimit(s, provider.RateLimitOptions{Rate: 2, Burst: 3})
		for i := range 10 {
			go p.Get(t.Context(), provider.Ref{Token: strconv.Itoa(i)})
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		for i := range 10 {
			want := time.Duration(max(i-2, 0)) * time.Second / 2
			if got, ok := at()[strconv.Itoa(i)]; !ok || !near(got, want) {
				t.Errorf("call %d came at %v (%v), want %v", i, got, ok, want)
			}
		}
	})
}

// No value of the options means that there is no limit.
func TestRateLimitZeroValues(t *testing.T) {
	for _, o := range []provider.RateLimitOptions{
		{}, {Rate: -1, Burst: -1, Wait: -1}, {Rate: math.NaN()}, {Rate: math.Inf(1)}, {Rate: math.Inf(-1)},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &stub{}
			p := provider.RateLimit(s, o)
			for i := range 1000 {
				go p.Get(t.Context(), provider.Ref{Token: strconv.Itoa(i)})
			}
			for second, want := range []int{10, 15, 20} {
				time.Sleep(time.Millisecond)
				if got := s.count("Get"); got != want {
					t.Errorf("%+v: %d calls after %d s, want %d", o, got, second, want)
				}
				time.Sleep(time.Second - time.Millisecond)
			}
			time.Sleep(time.Hour)
			if got := s.count("Get"); got < 59 || got > 61 {
				t.Errorf("%+v: %d calls in all, want those whose turn came within 10 s: 60", o, got)
			}
			s.took()
			for range 100 {
				go getOf(t, p, "late")
			}
			synctest.Wait()
			if got := s.count("Get"); got != 10 {
				t.Errorf("%+v: %d calls at once after a pause, want the burst of 10", o, got)
			}
			time.Sleep(time.Hour)
		})
	}
}

// A call that can't be made in time fails at once and uses no turn.
func TestRateLimitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := arrivals()
		p := provider.RateLimit(s, provider.RateLimitOptions{Rate: 1, Burst: 1, Wait: time.Hour})
		began := time.Now()
		if err := getOf(t, p, "first"); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		_, err := p.Get(short, provider.Ref{Token: "short"})
		if provider.ClassOf(err) != provider.RateLimited || !near(provider.AfterOf(err), time.Second) || time.Since(began) != 0 {
			t.Errorf("%v, after %v, in %v, want RateLimited with 1s at once", err, provider.AfterOf(err), time.Since(began))
		}
		leaving, leave := context.WithCancel(t.Context())
		left := make(chan error, 2)
		for range 2 { // one has the turn, the other one waits for it
			go func() {
				_, err := p.Get(leaving, provider.Ref{Token: "leaves"})
				left <- err
			}()
			synctest.Wait()
		}
		go p.Get(t.Context(), provider.Ref{Token: "stays"})
		time.Sleep(time.Second / 2)
		leave()
		synctest.Wait()
		for range 2 {
			if err := <-left; provider.ClassOf(err) != provider.Unavailable || !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want Unavailable for a caller that has gone", err)
			}
		}
		if _, err := p.Get(leaving, provider.Ref{Token: "gone"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want nothing to be called for a caller that has gone", err)
		}
		time.Sleep(time.Minute)
		if got := at(); len(got) != 2 || !near(got["stays"], time.Second) {
			t.Errorf("arrivals %v, want that which stays after 1s, as if nobody had been before it", got)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Get(soon, provider.Ref{Token: "soon"}); err != nil {
			t.Errorf("%v, want a call for which there is a turn to be made, whoever has left before", err)
		}
	})
}

// Nothing goes through before the time that the provider has named, whatever method was told; then it is one by one.
func TestRateLimitHonoursAfter(t *testing.T) {
	for _, c := range []struct{ after, want time.Duration }{
		{30 * time.Second, 30 * time.Second},
		{0, 5 * time.Second},
		{-time.Hour, 5 * time.Second},
		{1000 * time.Hour, 10 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			limited := provider.Errorf(provider.RateLimited, "slow down")
			limited.After = c.after
			s := &stub{do: func(context.Context, string, string) error { return limited }}
			p := provider.RateLimit(s, provider.RateLimitOptions{Rate: 1, Burst: 100, Wait: time.Second})
			if err := getOf(t, p, "first"); !errors.Is(err, limited) {
				t.Fatalf("%v, want the provider's error", err)
			}
			s.took()
			for _, m := range methods("c") {
				if _, err := m.call(t.Context(), p); provider.ClassOf(err) != provider.RateLimited || provider.AfterOf(err) != c.want {
					t.Errorf("After %v: %s: %v with %v, want RateLimited with %v", c.after, m.name, err, provider.AfterOf(err), c.want)
				}
			}
			time.Sleep(c.want - 500*time.Millisecond)
			s.do = nil
			if calls := s.took(); calls != nil {
				t.Errorf("After %v: calls %q before it", c.after, calls)
			}
			for range 5 {
				go getOf(t, p, "later")
			}
			time.Sleep(500*time.Millisecond - 1)
			if got := s.count("Get"); got != 0 {
				t.Errorf("After %v: %d calls before it", c.after, got)
			}
			time.Sleep(2 * time.Nanosecond)
			if got := s.count("Get"); got != 1 {
				t.Errorf("After %v: %d calls at its end, want 1", c.after, got)
			}
		})
	}
}

// A call that waits is sent away when everything is held back for longer than it may wait.
func TestRateLimitHoldsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := provider.Errorf(provider.RateLimited, "slow down")
		limited.After = time.Minute
		s := &stub{do: func(_ context.Context, _, token string) error {
			if token == "slow" {
				time.Sleep(300 * time.Millisecond)
				return limited
			}
			return nil
		}}
		p := provider.RateLimit(s, provider.RateLimitOptions{Rate: 2, Burst: 1, Wait: 5 * time.Second})
		go getOf(t, p, "slow")
		synctest.Wait()
		began := time.Now()
		var results []error
		done := make(chan error)
		for range 3 {
			go func() { done <- getOf(t, p, "waits") }()
		}
		for range 3 {
			results = append(results, <-done)
		}
		for _, err := range results {
			if provider.ClassOf(err) != provider.RateLimited || provider.AfterOf(err) < 59*time.Second {
				t.Errorf("%v with %v, want RateLimited with a minute", err, provider.AfterOf(err))
			}
		}
		if took := time.Since(began); took > time.Second || s.count("Get") != 1 {
			t.Errorf("they came back after %v and %d calls, want them to be told when it is known", took, s.count("Get"))
		}
		time.Sleep(2 * time.Minute)
		if err := getOf(t, p, "later"); err != nil || !slices.Contains(s.took(), "Get later") {
			t.Errorf("later: %v", err)
		}
	})
}
