// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/providertest"
)

const (
	kills   = 24
	workers = 4
	// patience is how long a call may be tried while the cloud is killed again and again.
	patience = time.Minute
)

// R-MA-02, R-MA-24: callers make, change, retain, adopt and destroy instances while the cloud is killed at random, from outside and before
// random operations on its files. Whatever was answered is so for ever: each token has one instance, none is lost, none is left behind, data stays.
func TestRandomKills(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	p := newProcess(t)
	var stop atomic.Bool
	var steps atomic.Int64
	var wg sync.WaitGroup
	crew := make([]*worker, workers)
	for n := range crew {
		crew[n] = &worker{served: p.served, p: p.client(), id: n, random: rand.New(rand.NewPCG(seed, uint64(n+1)))}
		wg.Go(func() { crew[n].work(t.Context(), &stop, &steps) })
	}
	for n := range kills {
		if n%2 == 1 { // it kills itself in the middle, if it gets that far
			kinds := []providertest.FaultKind{providertest.KillWrite, providertest.KillAfter, providertest.KillBefore}
			kind := kinds[random.IntN(3)]
			p.inject(providertest.Fault{Kind: kind, Skip: random.IntN(20)})
		}
		for enough := steps.Load() + int64(2+random.IntN(8)); steps.Load() < enough && !p.died(t.Context()) && !t.Failed(); {
			backoff.Sleep(t.Context(), time.Millisecond)
		}
		backoff.Sleep(t.Context(), time.Duration(random.IntN(20))*time.Millisecond)
		p.restart()
	}
	stop.Store(true)
	wg.Wait()
	var want providertest.Inventory
	for _, w := range crew {
		if w.err != nil {
			t.Errorf("worker %d: %v", w.id, w.err)
		}
		w.count(t.Context(), t, &want)
	}
	got := p.inventory()
	if got.Instances != want.Instances || got.Retained != want.Retained || got.Disks != want.Instances+want.Retained || got.UsedTokens != want.UsedTokens {
		t.Errorf("got %+v, want %d instances, %d retained, a disk of each, %d used-up tokens", got, want.Instances, want.Retained, want.UsedTokens)
	}
	t.Logf("%d kills: %+v", kills, got)
	if want.UsedTokens < workers || want.Instances+want.Retained < workers {
		t.Errorf("want %+v: the workers have not done enough to show anything", want)
	}
}

// A subject is a machine that a worker has, and what must be so.
type subject struct {
	r     provider.CreateRequest
	state provider.State // "" before it was made
	disk  string
	boots int
}

// A worker is a caller that knows what it was answered.
type worker struct {
	served
	p        provider.Provider
	id, made int
	random   *rand.Rand
	subjects []*subject
	gone     []provider.CreateRequest
	err      error
}

func (w *worker) work(ctx context.Context, stop *atomic.Bool, steps *atomic.Int64) {
	for range 4 {
		w.subjects = append(w.subjects, w.newSubject())
	}
	for !stop.Load() && w.err == nil {
		s := w.subjects[w.random.IntN(len(w.subjects))]
		if w.err = w.step(ctx, s); w.err == nil {
			w.err = w.verify(ctx, s)
		}
		steps.Add(1)
	}
	steps.Add(int64(1) << 32) // who waits for steps need not wait any longer
}

func (w *worker) newSubject() *subject {
	w.made++
	return &subject{r: want(w.id*10000+w.made, with(`"stopMilliseconds": 3`))}
}

// step does one thing with a machine until it is done.
func (w *worker) step(ctx context.Context, s *subject) error {
	choice := w.random.IntN(10)
	switch {
	case s.state == "":
		return w.create(ctx, s)
	case s.state == provider.Retained && choice < 7:
		return w.adopt(ctx, s)
	case choice == 0 || s.state == provider.Retained:
		if err := w.delete(ctx, s, provider.Destroy); err != nil {
			return err
		}
		w.gone = append(w.gone, s.r)
		*s = *w.newSubject()
		return nil
	case choice < 4:
		s.state = provider.Retained
		return w.delete(ctx, s, provider.Retain)
	case choice < 7:
		return w.update(ctx, s)
	}
	return w.reboot(ctx, s)
}

// again makes a call until it has a definite answer: Unavailable is none.
func again(ctx context.Context, what string, call func() (done bool, err error)) error {
	deadline := time.Now().Add(patience)
	for ctx.Err() == nil && time.Now().Before(deadline) {
		done, err := call()
		if done && err == nil {
			return nil
		}
		if err != nil && provider.ClassOf(err) != provider.Unavailable {
			return fmt.Errorf("%s: %w", what, err)
		}
		backoff.Sleep(ctx, time.Millisecond)
	}
	return errors.New(what + ": no end of it")
}

func (w *worker) create(ctx context.Context, s *subject) error {
	var i provider.Instance
	if err := again(ctx, "Create", func() (done bool, err error) { i, err = w.p.Create(ctx, s.r); return true, err }); err != nil {
		return err
	}
	s.state, s.disk, s.boots = provider.Running, i.Disks[0].ID, 1
	return again(ctx, "writing on the disk", func() (bool, error) { return true, w.admin.WriteDisk(ctx, s.disk, []byte(s.disk)) })
}

func (w *worker) delete(ctx context.Context, s *subject, mode provider.Mode) error {
	d := provider.DeleteRequest{Ref: provider.Ref{Token: s.r.Token}, Cluster: "c1", Mode: mode}
	return again(ctx, "Delete", func() (bool, error) { progress, err := w.p.Delete(ctx, d); return progress.Done, err })
}

func (w *worker) adopt(ctx context.Context, s *subject) error {
	w.made++
	r := provider.AdoptRequest{From: provider.Ref{Token: s.r.Token}, As: want(w.id*10000+w.made, string(s.r.Desired.Config))}
	adopter := provider.AbilitiesOf(w.p).Adopter
	if err := again(ctx, "Adopt", func() (bool, error) { _, err := adopter.Adopt(ctx, r); return true, err }); err != nil {
		return err
	}
	w.gone = append(w.gone, s.r)
	s.r, s.state, s.boots = r.As, provider.Running, 1
	return nil
}

func (w *worker) update(ctx context.Context, s *subject) error {
	w.made++
	s.r.Desired.Versions.Kubelet = fmt.Sprintf("v1.36.%d", w.made)
	s.r.Digest = s.r.Desired.Digest()
	u := provider.UpdateRequest{Ref: provider.Ref{Token: s.r.Token}, Cluster: "c1", Digest: s.r.Digest, Desired: s.r.Desired}
	updater := provider.AbilitiesOf(w.p).Updater
	return again(ctx, "Update", func() (bool, error) { progress, err := updater.Update(ctx, u); return progress.Done, err })
}

func (w *worker) reboot(ctx context.Context, s *subject) error {
	w.made++
	s.boots++
	id := fmt.Sprint(w.made)
	power := provider.AbilitiesOf(w.p).Power
	return again(ctx, "Reboot", func() (bool, error) {
		progress, err := power.Reboot(ctx, provider.Ref{Token: s.r.Token}, id)
		return progress.Done, err
	})
}

// verify looks whether a machine is what was answered.
func (w *worker) verify(ctx context.Context, s *subject) error {
	if s.state == "" {
		return nil
	}
	var (
		h    providertest.Host
		data []byte
	)
	err := again(ctx, "looking", func() (_ bool, err error) {
		if h, _, err = w.host(ctx, s.r.Token); err == nil {
			data, err = w.admin.ReadDisk(ctx, s.disk)
		}
		return true, err
	})
	if err == nil && (h.Token != s.r.Token || h.State != s.state || h.Digest != s.r.Digest || h.Owner != s.r.Owner || h.Boots != s.boots ||
		string(data) != s.disk || h.ProviderID != provider.ProviderID("fake", "a", s.r.Token)) {
		err = fmt.Errorf("instance %+v with %q on its disk, want token %q, state %s, digest %s, %d boots, and %q", h, data, s.r.Token, s.state, s.r.Digest, s.boots, s.disk)
	}
	return err
}

// count adds what a worker has, and looks at all of it for the last time.
func (w *worker) count(ctx context.Context, t *testing.T, sum *providertest.Inventory) {
	for _, s := range w.subjects {
		if err := w.verify(ctx, s); err != nil {
			t.Errorf("worker %d in the end: %v", w.id, err)
		}
		switch s.state {
		case "":
		case provider.Retained:
			sum.Retained++
		default:
			sum.Instances++
		}
	}
	for _, r := range w.gone {
		_, err := w.p.Create(ctx, r)
		wantClass(t, "Create with a token that was used up", err, provider.Conflict)
	}
	sum.UsedTokens += len(w.gone)
}
