// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/checkpoint/checkpointtest"
)

// narrator runs calls on a store and notes what they were about and what they returned.
type narrator struct {
	d *checkpointtest.Disk
	s *checkpoint.Store
	o checkpoint.Options

	faulty bool // calls of the disk fail now and then
	mended bool // they did, and will not any more
}

// open opens the store. Where a fault keeps it from that, the process is started again, as often as may be.
func (n *narrator) open() (err error) {
	for range 3 {
		if n.s, err = openOn(n.d, n.o); err == nil || !n.faulty {
			return err
		}
	}
	n.d.Inject(checkpointtest.Fault{}) // it never ends: somebody mends the disk
	n.mended = true
	n.s, err = openOn(n.d, n.o)
	return err
}

// kill ends the process at one of the calls of a Put, whose end nobody hears of, and starts it again. The disk stays.
func (n *narrator) kill(stream, payload string, at func(call string) bool) error {
	err := n.die(stream, payload, at)
	if err == nil {
		err = n.open()
	}
	if err != nil {
		return err
	}
	rec, err := n.s.Read(context.Background(), stream)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	n.d.Note(seen{stream, value{string(rec.Payload), err == nil}, rec.Generation})
	return nil
}

// after has a process end before one of its calls, and renamed before the one after its first rename.
func after(left int) func(string) bool {
	return func(string) bool { left--; return left < 0 }
}

func renamed() func(string) bool {
	done := false
	return func(call string) bool {
		was := done
		done = done || strings.HasPrefix(call, "rename ")
		return was
	}
}

// die opens the store, and ends the process at a call of a Put.
func (n *narrator) die(stream, payload string, at func(call string) bool) error {
	n.d.Note(begun{stream, value{payload, true}})
	process := checkpoint.OnDisk{Before: func(call string) {
		if at(call) {
			runtime.Goexit()
		}
	}}
	over := make(chan error, 1)
	go func() {
		defer close(over)
		s, err := checkpoint.OpenOnDisk(n.d, process, place, n.o)
		if err != nil {
			over <- err
			return
		}
		_ = s.Put(context.Background(), stream, []byte(payload))
	}()
	return <-over
}

func (n *narrator) put(stream, payload string) error {
	v := value{payload, true}
	n.d.Note(begun{stream, v})
	err := n.s.Put(context.Background(), stream, []byte(payload))
	return n.end(stream, v, err)
}

func (n *narrator) remove(stream string) error {
	n.d.Note(begun{stream, value{}})
	return n.end(stream, value{}, n.s.Delete(context.Background(), stream))
}

func (n *narrator) end(stream string, v value, err error) error {
	e := ended{stream: stream, value: v}
	switch {
	case errors.Is(err, checkpoint.ErrIndeterminate):
		e.err = "unsure"
	case errors.Is(err, checkpoint.ErrNotWritten):
		e.err = "refused"
	case err != nil:
		return err
	case v.there:
		rec, err := n.s.Read(context.Background(), stream)
		if err != nil && !n.faulty {
			return fmt.Errorf("Read(%q) after a Put: %w", stream, err)
		}
		e.gen = rec.Generation
	}
	n.d.Note(e)
	return nil
}

var streams = []string{"lkg", "d/a", "d/b"}

// history is a random sequence of calls, with restarts. From the third call on it is looked at.
func history(seed uint64, calls int, o checkpoint.Options) func(*checkpointtest.Disk) error {
	return func(d *checkpointtest.Disk) error {
		rnd := rand.New(rand.NewPCG(seed, 2))
		n := &narrator{d: d, o: o}
		if err := n.open(); err != nil {
			return err
		}
		for i := range calls {
			if err := n.step(rnd, i); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
		}
		return n.s.Close()
	}
}

// killed is a story of processes that end at one of the calls of a Put, each at the same one.
func killed(seed uint64, o checkpoint.Options) func(*checkpointtest.Disk) error {
	return func(d *checkpointtest.Disk) error {
		rnd := rand.New(rand.NewPCG(seed, 5))
		n := &narrator{d: d, o: o}
		for i := range 4 {
			at := renamed()
			if seed%2 == 1 {
				at = after(int(seed/2) % 24)
			}
			if err := n.kill(streams[rnd.IntN(len(streams))], payload(rnd, i), at); err != nil {
				return err
			}
			if err := n.put(streams[rnd.IntN(len(streams))], payload(rnd, 10+i)); err != nil {
				return err
			}
		}
		return n.s.Close()
	}
}

func (n *narrator) step(rnd *rand.Rand, i int) error {
	stream := streams[rnd.IntN(len(streams))]
	switch rnd.IntN(8) {
	case 0:
		return n.remove(stream)
	case 1:
		if err := n.s.Close(); err != nil {
			return err
		}
		return n.open()
	case 2:
		if err := n.s.Close(); err != nil {
			return err
		}
		return n.kill(stream, payload(rnd, i), after(rnd.IntN(20)))
	default:
		return n.put(stream, payload(rnd, i))
	}
}

func payload(rnd *rand.Rand, i int) string {
	return fmt.Sprint("payload ", i) + strings.Repeat(".", rnd.IntN(40))
}

// together is a story in which several callers use one store at a time. Which goes on at each call of the disk is drawn by seed,
// and nothing else moves meanwhile, so that a story can be told again.
func together(t *testing.T, seed uint64, callers, calls int, o checkpoint.Options) func(*checkpointtest.Disk) error {
	return func(d *checkpointtest.Disk) (err error) {
		synctest.Test(t, func(*testing.T) {
			err = concurrent(d, rand.New(rand.NewPCG(seed, 3)), callers, calls, o)
		})
		return err
	}
}

func concurrent(d *checkpointtest.Disk, rnd *rand.Rand, callers, calls int, o checkpoint.Options) (err error) {
	turns := &turns{}
	s, err := checkpoint.OpenOnDisk(d, checkpoint.OnDisk{Before: turns.wait}, place, o)
	if err != nil {
		return err
	}
	n := &narrator{d: d, s: s, o: o}
	if err := n.put("d/first", "makes the directory"); err != nil {
		return err
	}
	d.Settle()
	turns.begin()
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for c := range callers {
		private := rand.New(rand.NewPCG(rnd.Uint64(), 4))
		wg.Go(func() {
			for i := range calls {
				turns.wait(fmt.Sprint("call of ", c))
				stream := fmt.Sprint("d/", c)
				if i > 0 && private.IntN(5) == 0 {
					errs[c] = errors.Join(errs[c], n.remove(stream))
				} else {
					errs[c] = errors.Join(errs[c], n.put(stream, payload(private, i)))
				}
			}
		})
	}
	turns.run(rnd)
	wg.Wait()
	return errors.Join(errors.Join(errs...), s.Close())
}

// turns lets one goroutine of a bubble go on at a time.
type turns struct {
	mu      sync.Mutex
	on      bool
	waiting []turn
}

type turn struct {
	call string
	open chan struct{}
}

func (t *turns) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on = true
}

func (t *turns) wait(call string) {
	t.mu.Lock()
	if !t.on {
		t.mu.Unlock()
		return
	}
	next := turn{call, make(chan struct{})}
	t.waiting = append(t.waiting, next)
	t.mu.Unlock()
	<-next.open
}

// run gives turns until nobody waits for one.
func (t *turns) run(rnd *rand.Rand) {
	for {
		synctest.Wait()
		t.mu.Lock()
		if len(t.waiting) == 0 {
			t.on = false
			t.mu.Unlock()
			return
		}
		slices.SortFunc(t.waiting, func(a, b turn) int { return strings.Compare(a.call, b.call) })
		i := rnd.IntN(len(t.waiting))
		next := t.waiting[i]
		t.waiting = slices.Delete(t.waiting, i, i+1)
		t.mu.Unlock()
		close(next.open)
	}
}
