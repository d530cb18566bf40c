// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// fleet is a stub whose List finds the instances "0" to "99", and no others, and whose Get knows all of them that are asked for but "none".
func fleet() *stub {
	return &stub{
		do: func(_ context.Context, method, token string) error {
			if method == "Get" && token == "none" {
				return provider.Errorf(provider.NotFound, "no instance %q", token)
			}
			return nil
		},
		listed: func() (all []provider.Instance) {
			for i := range 100 {
				all = append(all, provider.Instance{Token: strconv.Itoa(i), ProviderID: provider.ProviderID("x", "", strconv.Itoa(i)), Message: "listed"})
			}
			return all
		},
	}
}

func coalesced(p provider.Provider) provider.Provider {
	return provider.CoalesceGet(p, provider.Scope{Cluster: "c"}, provider.CoalesceOptions{Window: time.Second})
}

// from returns "listed" or "got" for where an answer is from.
func from(t *testing.T, p provider.Provider, token string) string {
	t.Helper()
	i, err := p.Get(t.Context(), provider.Ref{Token: token})
	if err != nil || i.Token != token {
		t.Errorf("Get(%q) = %+v, %v", token, i, err)
	}
	return i.Message
}

// fill has a coalescer make a list.
func fill(t *testing.T, p provider.Provider) {
	t.Helper()
	if _, err := p.List(t.Context(), provider.Scope{Cluster: "c"}); err != nil {
		t.Fatal(err)
	}
}

// R-MA-30: a thousand calls in a window are two.
func TestCoalesceGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fleet()
		quick := s.do
		s.do = func(ctx context.Context, method, token string) error {
			time.Sleep(100 * time.Millisecond)
			return quick(ctx, method, token)
		}
		p := coalesced(s)
		for range 3 {
			var wg sync.WaitGroup
			for i := range 1000 {
				wg.Go(func() { from(t, p, strconv.Itoa(i%100)) })
			}
			wg.Wait()
			if g, l := s.count("Get"), s.count("List"); g != 1 || l != 1 {
				t.Errorf("%d Get and %d List, want one of each: the first call, and a list for all others", g, l)
			}
			s.took()
			time.Sleep(900*time.Millisecond - 1) // the list was begun 100 ms ago
			if got := from(t, p, "7"); got != "listed" || s.took() != nil {
				t.Errorf("just within the window the answer was %s", got)
			}
			time.Sleep(time.Second)
		}
	})
}

// A call now and then is no reason to list everything, and no answer is older than the window.
func TestCoalesceGetLeavesFewCallsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fleet()
		p := provider.CoalesceGet(s, provider.Scope{Cluster: "c"}, provider.CoalesceOptions{Window: -1})
		for range 10 {
			if got := from(t, p, "7"); got != "got" {
				t.Errorf("answer was %s, a second after the last one", got)
			}
			time.Sleep(time.Second)
		}
		fill(t, p)
		time.Sleep(time.Second)
		if got := from(t, p, "7"); got != "got" {
			t.Errorf("answer was %s when the list was as old as the window", got)
		}
		if got := s.count("List"); got != 1 {
			t.Errorf("%d lists, want the one that was asked for", got)
		}
	})
}

// What the list does not have, or has as another one, is asked for: only the provider can say NotFound.
func TestCoalesceGetAsksForWhatIsNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fleet()
		p := coalesced(s)
		fill(t, p)
		if err := getOf(t, p, "none"); provider.ClassOf(err) != provider.NotFound {
			t.Errorf("%v, want NotFound", err)
		}
		if got := from(t, p, "new"); got != "got" {
			t.Errorf("an instance that is not listed was %s", got)
		}
		for _, c := range []struct {
			ref  provider.Ref
			want string
		}{
			{provider.Ref{Token: "7", ProviderID: "x:///7"}, "listed"},
			{provider.Ref{ProviderID: "x:///7"}, "listed"},
			{provider.Ref{Token: "7", ProviderID: "x:///zone/7"}, "got"},
			{provider.Ref{ProviderID: "7"}, "got"},
			{provider.Ref{}, "got"},
		} {
			if i, err := p.Get(t.Context(), c.ref); i.Message != c.want || err != nil {
				t.Errorf("Get(%+v) was %s, want %s: %v", c.ref, i.Message, c.want, err)
			}
		}
	})
}

// changes are the calls that may change an instance.
func changes() []method {
	return slices.DeleteFunc(methods("c"), func(m method) bool {
		return !slices.Contains([]string{"Create", "Delete", "Update", "Stop", "Reboot", "Adopt"}, m.name)
	})
}

// After a change, while one is under way, and for a list that was begun before it, the provider is asked; about the other instances it is not.
func TestCoalesceGetForgetsWhatChanges(t *testing.T) {
	for _, m := range changes() {
		synctest.Test(t, func(t *testing.T) {
			s := fleet()
			listed := s.listed()
			s.listed = func() []provider.Instance {
				return append(listed, provider.Instance{Token: "t", Message: "listed"}, provider.Instance{Token: "u", Message: "listed"})
			}
			p := coalesced(s)
			expect := func(when, want string) {
				t.Helper()
				if got := from(t, p, "t"); got != want {
					t.Errorf("%s: %s: the token was %s, want %s", m.name, when, got, want)
				}
				if u := from(t, p, "u"); m.name == "Adopt" && u != want || m.name != "Adopt" && u != "listed" {
					t.Errorf("%s: %s: the other token was %s", m.name, when, u)
				}
				if got := from(t, p, "7"); got != "listed" {
					t.Errorf("%s: %s: an instance that was not touched was %s", m.name, when, got)
				}
			}
			fill(t, p)
			expect("before", "listed")
			end, hold := make(chan struct{}), make(chan struct{})
			held := false
			s.do = func(_ context.Context, method, _ string) error {
				switch {
				case method == m.name:
					<-end
				case method == "List" && held:
					<-hold
				}
				return nil
			}
			go m.call(t.Context(), p)
			synctest.Wait()
			expect("under way", "got")
			fill(t, p)
			expect("listed while it is under way", "got")
			held = true
			go p.List(t.Context(), provider.Scope{Cluster: "c"})
			synctest.Wait()
			close(end)
			synctest.Wait()
			expect("done", "got")
			hold <- struct{}{}
			synctest.Wait()
			expect("listed from before its end", "got")
			close(hold)
			fill(t, p)
			expect("listed after it", "listed")
		})
	}
}

// A call that fails may have had its effect.
func TestCoalesceGetForgetsWhatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fleet()
		p := coalesced(s)
		fill(t, p)
		s.do = func(_ context.Context, method, _ string) error {
			if method == "Delete" {
				return errors.New("the reply was lost")
			}
			return nil
		}
		p.Delete(t.Context(), provider.DeleteRequest{Ref: provider.Ref{ProviderID: "x:///7"}})
		if got := from(t, p, "7"); got != "got" {
			t.Errorf("after a failed Delete the instance was %s", got)
		}
	})
}

// Whoever makes the list may go: the others' list is made by another one.
func TestCoalesceGetSurvivesItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fleet()
		s.do = func(ctx context.Context, method, _ string) error {
			if method != "List" {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("listing: %w", ctx.Err())
			case <-time.After(300 * time.Millisecond):
				return nil
			}
		}
		p := coalesced(s)
		from(t, p, "7")
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 2)
		go func() {
			_, err := p.Get(ctx, provider.Ref{Token: "8"})
			gone <- err
		}()
		synctest.Wait()
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if got := from(t, p, strconv.Itoa(i)); got != "listed" {
					t.Errorf("%d was %s", i, got)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if err := <-gone; provider.ClassOf(err) != provider.Unavailable || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want Unavailable for a caller that has gone", err)
		}
		began := time.Now()
		follower, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		if _, err := p.Get(follower, provider.Ref{Token: "9"}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Millisecond {
			t.Errorf("%v after %v, want it to return at its own deadline", err, time.Since(began))
		}
		wg.Wait()
		if got := s.count("List"); got != 2 {
			t.Errorf("%d lists, want that of the one who went and one more", got)
		}
	})
}

// Callers may do with an answer what they want.
func TestCoalesceGetGivesCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{listed: func() []provider.Instance {
			return []provider.Instance{{Token: "t", Disks: []provider.Disk{{ID: "d"}}, Addresses: []provider.Address{{Address: "a"}}}}
		}}
		p := coalesced(s)
		all, err := p.List(t.Context(), provider.Scope{Cluster: "c"})
		if err != nil {
			t.Fatal(err)
		}
		all[0].Disks[0].ID = "changed"
		for range 2 {
			i, err := p.Get(t.Context(), provider.Ref{Token: "t"})
			if err != nil || i.Disks[0].ID != "d" || i.Addresses[0].Address != "a" {
				t.Errorf("%+v, %v", i, err)
			}
			i.Disks[0].ID, i.Addresses[0].Address = "changed", "changed"
		}
	})
}
