// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/provider"
)

// drive creates or deletes machines without end. Others do the same: what counts is what is there in the end.
func drive(ctx context.Context, p provider.Provider, j job) error {
	for n := 0; ctx.Err() == nil; n++ {
		r := j.Drive[n%len(j.Drive)]
		if j.Delete {
			_, _ = p.Delete(ctx, deletion(r, provider.Destroy))
		} else {
			_, _ = p.Create(ctx, r)
		}
	}
	return nil
}

// R-MA-02: however often controllers are killed while they create, and then delete, each token has one host at first and none at last.
func TestKilledControllersLeaveOneClaimEach(t *testing.T) {
	p := newPool(t, 4)
	var all []provider.CreateRequest
	for i := range 3 {
		all = append(all, p.request(fmt.Sprintf("m%d", i), p.config(nil)))
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	p.killing(r, job{Settings: p.settings(), Drive: all})
	for _, m := range all {
		started(t, p.provider(), m)
		if on := p.claiming(m.Token); len(on) != 1 {
			t.Errorf("token %q has claims on %q, want one", m.Token, on)
		}
	}
	begun := 0
	for _, h := range p.hosts {
		begun += p.count("run." + h.Name + ".begun")
	}
	if begun != len(all) {
		t.Errorf("bootstrap was begun %d times for %d tokens", begun, len(all))
	}
	p.killing(r, job{Settings: p.settings(), Drive: all, Delete: true})
	for _, m := range all {
		must(t, "Delete", func() (provider.Progress, error) {
			return p.provider().Delete(t.Context(), deletion(m, provider.Destroy))
		})
		if _, err := p.provider().Create(t.Context(), m); provider.ClassOf(err) != provider.Conflict {
			t.Errorf("Create with a token that was used up: %v, want Conflict", err)
		}
	}
	if left, err := p.inventory(); err != nil || left.Instances+left.Disks != 0 {
		t.Errorf("the pool holds %+v (%v), want nothing", left, err)
	}
}

// killing kills helpers, two at a time, each after a random while.
func (p *pool) killing(r *rand.Rand, j job) {
	p.t.Helper()
	const rounds = 6
	for range rounds {
		var wg sync.WaitGroup
		for range 2 {
			r.Shuffle(len(j.Drive), func(a, b int) { j.Drive[a], j.Drive[b] = j.Drive[b], j.Drive[a] })
			cmd, stderr, err := helper(p.t.Context(), j)
			if err != nil {
				p.t.Fatal(err)
			}
			time.AfterFunc(time.Duration(100+r.IntN(700))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			wg.Go(func() {
				if died, err := killed(cmd, stderr); !died {
					p.t.Errorf("a helper has ended by itself: %v", err)
				}
			})
		}
		wg.Wait()
	}
}

// claiming are the hosts whose claim names a token.
func (p *pool) claiming(token string) []string {
	var on []string
	for _, h := range p.hosts {
		claim, _ := os.ReadFile(filepath.Join(h.Directory, "claim.json"))
		if strings.Contains(string(claim), `"token":"`+token+`"`) {
			on = append(on, h.Name)
		}
	}
	return on
}

// The agent holds the lock of a machine for a moment when it looks whether the machine lives. A step that begins then
// waits for it.
func TestAStepWaitsForALookAtItsMachine(t *testing.T) {
	p := newPool(t, 1)
	alive := filepath.Join(p.hosts[0].Directory, "alive")
	if err := os.MkdirAll(p.hosts[0].Directory, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(alive, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	looked := make(chan error, 1)
	go func() {
		err := testproc.Poll(30*time.Second, func() error {
			found, err := filepath.Glob(filepath.Join(p.hosts[0].Directory, "steps", "*", "pid"))
			if err == nil && len(found) == 0 {
				err = errors.New("no step has begun")
			}
			return err
		})
		time.AfterFunc(300*time.Millisecond, func() { looked <- errors.Join(err, f.Close()) })
	}()
	started(t, p.provider(), p.request("m", p.config(nil)))
	if err := <-looked; err != nil {
		t.Error(err)
	}
}
