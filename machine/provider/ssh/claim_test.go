// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/belayproject/belay/machine/provider"
)

// reserveOn reserves a host, though others may be free.
func (p *pool) reserveOn(c *core, r provider.CreateRequest, host int) sight {
	config := Config{Bootstrap: "true", Stop: "true", TimeoutSeconds: 60}
	s, err := c.reserve(p.t.Context(), []sight{c.look(p.t.Context(), p.hosts[host], r.Token)}, r, config)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// Two callers that have reserved two hosts for one token, as each has seen the other's free, end with one claim, whatever the order.
func TestTwoReservationsBecomeOneClaim(t *testing.T) {
	for n := range 4 { // the order of the hosts is another one for each
		for _, order := range []string{"first", "second", "both", "between"} {
			t.Run(fmt.Sprintf("%d-%s", n, order), func(t *testing.T) {
				t.Parallel()
				p := newPool(t, 2)
				r := p.request(fmt.Sprintf("m%d", n), p.config(nil))
				one, two := p.core(), p.core()
				a := p.reserveOn(one, r, 0)
				if order == "between" {
					// The other one reserves, and commits if it can, when the first has looked at it and not committed yet.
					one.at = once(func() {
						b := p.reserveOn(two, r, 1)
						_, _ = two.commit(t.Context(), b, r.Token, &r.Join)
					})
					_, _ = one.commit(t.Context(), a, r.Token, &r.Join)
				} else {
					p.commitBoth(one, two, a, p.reserveOn(two, r, 1), r, order)
				}
				i := started(t, p.provider(), r)
				if on := p.claiming(r.Token); len(on) != 1 || on[0] != hostOf(i.Ref()) {
					t.Errorf("claims on %q, and the instance is %q: want one claim, and its", on, i.ProviderID)
				}
			})
		}
	}
}

// once is a hook that does something the first time.
func once(do func()) func(string) {
	var first sync.Once
	return func(string) { first.Do(do) }
}

func (p *pool) commitBoth(one, two *core, a, b sight, r provider.CreateRequest, order string) {
	commit := func(c *core, s sight) {
		if _, err := c.commit(p.t.Context(), s, r.Token, &r.Join); err != nil && !errors.Is(err, errRaced) {
			p.t.Errorf("commit of %q: %v", s.host.Name, err)
		}
	}
	switch order {
	case "first":
		commit(one, a)
		commit(two, b)
	case "second":
		commit(two, b)
		commit(one, a)
	case "both":
		var wg sync.WaitGroup
		wg.Go(func() { commit(one, a) })
		wg.Go(func() { commit(two, b) })
		wg.Wait()
	}
}

// Many callers of several processes make one machine, and bootstrap it once.
func TestManyCallersOneBootstrap(t *testing.T) {
	p := newPool(t, 4)
	r := p.request("m", p.config(nil))
	var wg sync.WaitGroup
	for range 16 {
		c := p.provider()
		wg.Go(func() {
			if _, err := c.Create(t.Context(), r); err != nil && provider.ClassOf(err) != provider.Unavailable {
				t.Errorf("Create: %v", err)
			}
		})
	}
	wg.Wait()
	i := started(t, p.provider(), r)
	if on, n := p.claiming(r.Token), p.count("run."+hostOf(i.Ref())+".begun"); len(on) != 1 || n != 1 {
		t.Errorf("claims on %q, bootstrap was begun %d times: want one of each", on, n)
	}
}

// A host on which the script of a call dies at any point goes on with it later: one claim, one bootstrap, and nothing is left after Destroy.
func TestHostDiesAtEachPoint(t *testing.T) {
	for _, what := range []string{"create", "destroy"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for point := 1; ; point++ {
				if !dieAt(t, what, point) {
					if point < 6 {
						t.Errorf("the call has %d points, want more", point-1)
					}
					return
				}
			}
		})
	}
}

// dieAt reports whether the point was reached.
func dieAt(t *testing.T, what string, point int) bool {
	p := newPool(t, 1)
	c, r := p.provider(), p.request("m", p.config(nil))
	call := func() error { _, err := c.Create(t.Context(), r); return err }
	if what != "create" {
		started(t, c, r)
		d := deletion(r, provider.Destroy)
		call = func() error {
			p, err := c.Delete(t.Context(), d)
			for err == nil && !p.Done {
				p, err = c.Delete(t.Context(), d)
			}
			return err
		}
	}
	p.put("faults/point", fmt.Sprint(point))
	err := call()
	if died := len(p.read("faults/points")) >= point; !died {
		if err != nil {
			t.Errorf("point %d: no script has died, and the call has failed: %v", point, err)
		}
		return false
	}
	if err == nil {
		t.Errorf("point %d: the script has died, and the call has no error", point)
	}
	if err := os.Remove(p.path("faults/point")); err != nil {
		t.Fatal(err)
	}
	if what == "create" {
		i := started(t, c, r)
		if n := p.count("run.h0.begun"); n != 1 || hostOf(i.Ref()) != "h0" {
			t.Errorf("point %d: bootstrap was begun %d times, want once", point, n)
		}
	}
	must(t, "Destroy", func() (provider.Progress, error) { return c.Delete(t.Context(), deletion(r, provider.Destroy)) })
	p.wantNothing(point)
	return true
}

func (p *pool) wantNothing(point int) {
	if left, err := p.inventory(); err != nil || left.Instances+left.Disks != 0 || p.runs("h0") {
		p.t.Errorf("point %d: the host holds %+v (%v), want nothing", point, left, err)
	}
	if p.look().rec != nil || p.there("steps") || p.there("console.log") {
		p.t.Errorf("point %d: files of a step are left on a free host", point)
	}
}

// there reports whether the first host has a file.
func (p *pool) there(name string) bool {
	_, err := os.Stat(filepath.Join(p.hosts[0].Directory, name))
	return err == nil
}

func (p *pool) look() sight {
	return p.core().look(context.WithoutCancel(p.t.Context()), p.hosts[0], "")
}

// Tokens that were used up are known again, and the list of them has an end.
func TestUsedTokensAreBounded(t *testing.T) {
	p := newPool(t, 1)
	c, r := p.provider(), p.request("m", p.config(nil))
	var old strings.Builder
	for i := range keepUsed {
		fmt.Fprintf(&old, "old-%d\n", i)
	}
	started(t, c, r)
	used := filepath.Join(p.hosts[0].Directory, "used")
	if err := os.WriteFile(used, []byte(old.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "Delete", func() (provider.Progress, error) { return c.Delete(t.Context(), deletion(r, provider.Destroy)) })
	text, err := os.ReadFile(used)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != keepUsed || lines[0] != "old-1" || lines[len(lines)-1] != r.Token {
		t.Errorf("%d tokens are kept, from %q to %q, want %d, the last of which is %q", len(lines), lines[0], lines[len(lines)-1], keepUsed, r.Token)
	}
	if _, err := c.Create(t.Context(), r); provider.ClassOf(err) != provider.Conflict {
		t.Errorf("Create: %v, want Conflict", err)
	}
}
