// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// failing is a stub whose calls end as the token says: a class, or "" or "t" for success.
func failing() *stub {
	return &stub{do: func(ctx context.Context, _, token string) error {
		switch token {
		case "", "t":
			return nil
		case "hang":
			<-ctx.Done()
			return ctx.Err()
		}
		return provider.Errorf(provider.Class(token), "told so")
	}}
}

func trip(t *testing.T, p provider.Provider, tokens ...string) {
	t.Helper()
	for _, token := range tokens {
		getOf(t, p, token)
	}
}

// opened reports whether a breaker lets nothing through.
func opened(t *testing.T, p provider.Provider, s *stub) bool {
	t.Helper()
	s.took()
	err := getOf(t, p, "NotSupported") // says nothing, and so changes nothing
	return s.took() == nil && provider.ClassOf(err) == provider.Unavailable
}

// What opens a breaker, and what does not.
func TestBreakerCounts(t *testing.T) {
	const un, in = "Unavailable", "Internal"
	for _, c := range []struct {
		name   string
		tokens []string
		open   bool
	}{
		{"two", []string{un, un}, false},
		{"three", []string{un, un, un}, true},
		{"of both classes", []string{un, in, un}, true},
		{"of an unknown class", []string{un, un, "Strange"}, true},
		{"success between", []string{un, un, "t", un, un}, false},
		{"NotFound between", []string{un, un, "NotFound", un, un}, false},
		{"Stockout between", []string{un, un, "Stockout", un, un}, false},
		{"Conflict between", []string{un, un, "Conflict", un, un}, false},
		{"Unauthorized between", []string{un, un, "Unauthorized", un, un}, false},
		{"InvalidConfig says nothing", []string{un, un, "InvalidConfig", un}, true},
		{"NotSupported says nothing", []string{un, un, "NotSupported", un}, true},
		{"RateLimited says nothing", []string{un, un, "RateLimited", un}, true},
		{"only refusals", []string{"RateLimited", "InvalidConfig", "Stockout", "NotFound", "Conflict", "Unauthorized"}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := failing()
			p := provider.Breaker(s, provider.BreakerOptions{Failures: 3})
			trip(t, p, c.tokens...)
			if got := opened(t, p, s); got != c.open {
				t.Errorf("%s: after %q it is open: %v, want %v", c.name, c.tokens, got, c.open)
			}
		})
	}
}

// A success that needs nobody's answer does not hide that nobody answers.
func TestBreakerIsNotFooledByPlans(t *testing.T) {
	for _, m := range methods("t") {
		if m.name == "Reboot" || m.name == "Adopt" || m.name == "Console" || m.name == "Resize" || m.name == "List" {
			continue // the stub's answer is by the token alone
		}
		synctest.Test(t, func(t *testing.T) {
			s := failing()
			p := provider.Breaker(s, provider.BreakerOptions{Failures: 3})
			trip(t, p, "Unavailable", "Unavailable")
			if _, err := m.call(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			trip(t, p, "Unavailable")
			silent := m.name == "Plan" || m.name == "Validate" || m.name == "Capacity"
			if got := opened(t, p, s); got != silent {
				t.Errorf("after a good %s among failures it is open: %v, want %v", m.name, got, silent)
			}
		})
	}
}

// While it is open nothing is called, and the answer says for how long.
func TestBreakerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing()
		p := provider.Breaker(s, provider.BreakerOptions{})
		trip(t, p, "Unavailable", "Unavailable", "Unavailable", "Unavailable")
		if opened(t, p, s) {
			t.Fatal("open after 4 failures, want 5")
		}
		trip(t, p, "Internal")
		s.took()
		time.Sleep(10 * time.Second)
		for _, m := range methods("t") {
			_, err := m.call(t.Context(), p)
			if provider.ClassOf(err) != provider.Unavailable || provider.AfterOf(err) != 20*time.Second {
				t.Errorf("%s: %v with %v, want Unavailable with 20s", m.name, err, provider.AfterOf(err))
			} else if !strings.Contains(err.Error(), m.name+" was not called: 5 calls in a row have failed, the last with: Internal: told so") {
				t.Errorf("%s: %v", m.name, err)
			}
		}
		if calls := s.took(); calls != nil {
			t.Errorf("calls %q", calls)
		}
		time.Sleep(20*time.Second - 1)
		if !opened(t, p, s) {
			t.Error("closed before 30 s")
		}
		time.Sleep(time.Nanosecond)
		if opened(t, p, s) {
			t.Error("open after 30 s")
		}
	})
}

// One call tries, a Delete if it is the first; what it says counts for all.
func TestBreakerProbes(t *testing.T) {
	for _, c := range []struct {
		end  error
		open bool
	}{
		{nil, false},
		{provider.Errorf(provider.NotFound, "gone"), false},
		{provider.Errorf(provider.Unavailable, "down"), true},
		{errors.New("unclassed"), true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := failing()
			p := provider.Breaker(s, provider.BreakerOptions{Failures: 1, Open: time.Minute})
			trip(t, p, "Unavailable")
			time.Sleep(time.Minute)
			end := make(chan error)
			s.do = func(context.Context, string, string) error { return <-end }
			go p.Delete(t.Context(), provider.DeleteRequest{Ref: provider.Ref{Token: "t"}})
			synctest.Wait()
			if s.count("Delete") != 1 {
				t.Fatal("the Delete was not let through")
			}
			for range 3 {
				if !opened(t, p, s) {
					t.Fatal("a second call was let through beside the one that tries")
				}
			}
			time.Sleep(time.Second)
			end <- c.end
			synctest.Wait()
			s.do = failing().do
			if got := opened(t, p, s); got != c.open {
				t.Errorf("after %v it is open: %v, want %v", c.end, got, c.open)
			}
			time.Sleep(time.Minute)
			if opened(t, p, s) {
				t.Errorf("after %v and a minute nothing is let through", c.end)
			}
		})
	}
}

// A try that says nothing is followed by the next, and one that does not come back by another one in its time.
func TestBreakerProbesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing()
		p := provider.Breaker(s, provider.BreakerOptions{Failures: 1, Open: time.Minute})
		trip(t, p, "Unavailable")
		time.Sleep(time.Minute)
		trip(t, p, "NotSupported", "RateLimited", "InvalidConfig")
		if got := len(s.took()); got != 4 {
			t.Errorf("%d calls, want 4: each of the silent ones was to be followed by the next", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Get(ctx, provider.Ref{Token: "hang"})
		synctest.Wait()
		if !opened(t, p, s) {
			t.Fatal("a second call was let through beside the one that tries")
		}
		time.Sleep(time.Minute)
		trip(t, p, "t")
		if opened(t, p, s) {
			t.Error("open after a good try, because an earlier one hangs")
		}
		trip(t, p, "Unavailable")
		cancel()
		synctest.Wait()
		if !opened(t, p, s) {
			t.Error("the end of an earlier try has closed it")
		}
	})
}

// The callers' own doings are no failures of the provider; their deadlines are.
func TestBreakerAndTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing()
		p := provider.Breaker(s, provider.BreakerOptions{Failures: 1})
		ctx, cancel := context.WithCancel(t.Context())
		go p.Get(ctx, provider.Ref{Token: "hang"})
		synctest.Wait()
		cancel()
		synctest.Wait()
		if _, err := p.Get(ctx, provider.Ref{Token: "t"}); !errors.Is(err, context.Canceled) || s.count("Get") != 1 {
			t.Errorf("%v after %d calls, want no call for a caller that has gone", err, s.count("Get"))
		}
		if opened(t, p, s) {
			t.Error("a caller that has gone has opened it")
		}
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p.Get(late, provider.Ref{Token: "hang"})
		if !opened(t, p, s) {
			t.Error("a provider that does not answer in time has not opened it")
		}
	})
}

// What was begun before the breaker opened says nothing when it comes back.
func TestBreakerIgnoresLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing()
		p := provider.Breaker(s, provider.BreakerOptions{Failures: 1, Open: time.Minute})
		end := make(chan error)
		quick := s.do
		s.do = func(ctx context.Context, method, token string) error {
			if token == "late" {
				return <-end
			}
			return quick(ctx, method, token)
		}
		for range 2 {
			go getOf(t, p, "late")
		}
		synctest.Wait()
		trip(t, p, "Unavailable")
		time.Sleep(30 * time.Second)
		end <- nil
		synctest.Wait()
		if !opened(t, p, s) {
			t.Error("a late success has closed it")
		}
		end <- provider.Errorf(provider.Unavailable, "down")
		synctest.Wait()
		time.Sleep(30 * time.Second)
		if opened(t, p, s) {
			t.Error("a late failure has kept it open for longer")
		}
	})
}
