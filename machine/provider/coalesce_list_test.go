// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// A list that fails for a while fails all who wait, and is not made for each; one that can't be had is done without.
func TestCoalesceGetWithoutLists(t *testing.T) {
	limited := provider.Errorf(provider.RateLimited, "slow down")
	limited.After = 7 * time.Second
	for _, c := range []struct {
		err  error
		want provider.Class
	}{
		{limited, provider.RateLimited},
		{provider.Errorf(provider.Unavailable, "down"), provider.Unavailable},
		{provider.Errorf(provider.NotSupported, "no list"), ""},
		{provider.Errorf(provider.Unauthorized, "no right to list"), ""},
		{errors.New("a bad entry"), ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := fleet()
			s.do = func(_ context.Context, method, _ string) error {
				if method == "List" {
					time.Sleep(100 * time.Millisecond)
					return c.err
				}
				return nil
			}
			p := coalesced(s)
			from(t, p, "7")
			var wg sync.WaitGroup
			for i := range 50 {
				wg.Go(func() {
					err := getOf(t, p, strconv.Itoa(i))
					if provider.ClassOf(err) != c.want || provider.AfterOf(err) != provider.AfterOf(c.err) {
						t.Errorf("%v with %v, want class %q and what the list has said", err, provider.AfterOf(err), c.want)
					}
				})
			}
			wg.Wait()
			gets := 51
			if c.want != "" {
				gets = 1
			}
			if g, l := s.count("Get"), s.count("List"); g != gets || l != 1 {
				t.Errorf("%v: %d Get and %d List, want %d and 1", c.err, g, l, gets)
			}
			time.Sleep(500 * time.Millisecond)
			s.took()
			err := getOf(t, p, "7")
			if l := s.count("List"); provider.ClassOf(err) != c.want || (c.want == "") != (l == 0) {
				t.Errorf("%v: then %v with %d lists, want one in a window if it can't be had, and another try if it may", c.err, err, l)
			}
		})
	}
}

// A list that takes longer than the window serves those who came before it.
func TestCoalesceGetWithSlowLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fleet()
		s.do = func(_ context.Context, method, _ string) error {
			if method == "List" {
				time.Sleep(10 * time.Second)
			}
			return nil
		}
		p := coalesced(s)
		from(t, p, "7")
		var wg sync.WaitGroup
		began := time.Now()
		for range 10 {
			wg.Go(func() {
				if got := from(t, p, "7"); got != "listed" || time.Since(began) != 10*time.Second {
					t.Errorf("was %s after %v", got, time.Since(began))
				}
			})
		}
		wg.Wait()
		if got := s.count("List"); got != 1 {
			t.Errorf("%d lists", got)
		}
	})
}

// Lists of other scopes are none of its business; those of its own are as good as one that it makes, until a later one.
func TestCoalesceGetAndLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fleet()
		p := coalesced(s)
		if all, err := p.List(t.Context(), provider.Scope{Cluster: "other"}); len(all) != 100 || err != nil {
			t.Errorf("List = %d, %v", len(all), err)
		}
		if got := from(t, p, "7"); got != "got" {
			t.Errorf("from the list of another cluster it was %s", got)
		}
		hold := make(chan struct{})
		s.do = func(_ context.Context, method, _ string) error {
			if method == "List" {
				<-hold
			}
			return nil
		}
		go p.List(t.Context(), provider.Scope{Cluster: "c"})
		synctest.Wait()
		s.do = nil
		fill(t, p)
		p.Create(t.Context(), provider.CreateRequest{Token: "7"})
		fill(t, p)
		s.listed = func() []provider.Instance { return []provider.Instance{{Token: "7", Message: "listed before"}} }
		close(hold)
		synctest.Wait()
		if got := from(t, p, "7"); got != "listed" {
			t.Errorf("an earlier list that came late has replaced the last one: 7 was %s", got)
		}
	})
}
