// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/identity"
)

// TestSubscriberIsToldWhoIsThere shows that a late subscriber gets the members that are there and misses nothing after, and that cancel ends it.
func TestSubscriberIsToldWhoIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, []string{"unconfirmed"})
		defer w.stop()
		w.write("suspect", "suspect")
		w.after(25 * time.Second)
		w.write("alive", "alive")
		var told []string
		cancel := w.view.Subscribe(func(e identity.Event) {
			told = append(told, fmt.Sprint(e.Type, " ", e.Peer.Key.Name, " ", e.Peer.State))
		})
		w.renew("suspect")
		w.after(time.Second)
		slices.Sort(told)
		want := []string{"Joined alive Alive", "Joined me Alive", "Joined suspect Suspect", "Recovered suspect Alive"}
		if !slices.Equal(told, want) {
			t.Errorf("got %q, want %q", told, want)
		}
		cancel()
		cancel()
		w.remove("alive")
		w.after(time.Minute)
		if len(told) != len(want) {
			t.Errorf("after cancel it was told %q", told[len(want):])
		}
	})
}

// TestSlowSubscriberHoldsUpNobody has one handler wait while another is told, in order, and the view is asked from inside it.
func TestSlowSubscriberHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		free := make(chan struct{})
		var told []string
		cancel := w.view.Subscribe(func(e identity.Event) {
			<-free
			peer, ok := w.view.Get(e.Peer.Key)
			told = append(told, fmt.Sprint(e.Type, e.Peer.Holder, " ", ok, peer.Holder, len(w.view.Peers())))
		})
		w.write("a", "1")
		w.write("a", "2")
		w.after(time.Second)
		w.wantTold("the other subscriber", "0s Joined a", "0s Left a Replaced", "0s Joined a")
		ended := make(chan struct{})
		close(free)
		synctest.Wait()
		go func() { cancel(); close(ended) }()
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("cancel does not return")
		}
		if want := []string{"Joinedme trueme2", "Joined1 true22", "Left1 true22", "Joined2 true22"}; !slices.Equal(told, want) {
			t.Errorf("got %q, want %q", told, want)
		}
	})
}

// TestCancelWaitsForTheHandler shows that nothing of the handler goes on after cancel, and none of what was queued comes.
func TestCancelWaitsForTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		calls := 0
		cancel := w.view.Subscribe(func(identity.Event) { calls++; time.Sleep(time.Minute); calls++ })
		w.write("a", "a")
		synctest.Wait()
		before := w.clock.Elapsed()
		cancel()
		if took := w.clock.Elapsed() - before; took != time.Minute || calls != 2 {
			t.Errorf("cancel returned after %v and %d calls, want it to wait for the one handler", took, calls)
		}
	})
}

// TestRunOwnsTheDeliveries shows that Run returns after its handlers, and that nothing happens after it.
func TestRunOwnsTheDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		calls := 0
		w.view.Subscribe(func(identity.Event) { calls++; time.Sleep(time.Minute); calls++ })
		w.write("a", "a")
		synctest.Wait()
		w.cancel()
		synctest.Wait()
		select {
		case <-w.stopped:
			t.Error("Run ended before its handler")
		default:
		}
		w.after(time.Minute)
		if err := <-w.stopped; err != nil || calls != 2 {
			t.Errorf("Run ended with %v after %d calls, want nil after one handler", err, calls)
		}
		w.set(func(h *hub) {
			if len(h.handlers) != 0 {
				t.Error("the Source still has the handler")
			}
		})
		w.view.Subscribe(func(identity.Event) { t.Error("told after the end") })()
		w.wantSick("after the end", "it does not run")
		if err := w.view.Run(t.Context()); !errors.Is(err, identity.ErrRunning) {
			t.Errorf("a second Run returned %v, want ErrRunning", err)
		}
	})
}

// TestRunSaysWhatItsSourceSays has a Source that refuses handlers, as a stopped informer does.
func TestRunSaysWhatItsSourceSays(t *testing.T) {
	h := newHub()
	refusal := errors.New("stopped already")
	view, err := identity.NewView(identity.ViewConfig{Source: refusing{h, refusal}, Canary: h})
	if err != nil {
		t.Fatal(err)
	}
	if err := view.Run(t.Context()); !errors.Is(err, refusal) {
		t.Errorf("got %v, want the refusal", err)
	}
}

type refusing struct {
	*hub
	err error
}

func (r refusing) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return nil, r.err
}

// TestSubscribersAgreeAtAnyMoment has members come and go at random, and subscribers too. For each of them each incarnation joins and leaves
// in turn, and at the end all know the same. I5.
func TestSubscribersAgreeAtAnyMoment(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, []string{"p0", "p1"})
			random := rand.New(rand.NewPCG(seed, 1))
			var present []map[string]string
			for range 300 {
				w.step(random)
				if random.IntN(20) == 0 {
					present = append(present, w.follow(seed))
				}
			}
			synctest.Wait()
			for i, there := range present {
				for _, p := range w.view.Peers(identity.Alive, identity.Suspect) {
					if there[p.Key.Name] != p.Holder {
						t.Errorf("seed %d: subscriber %d thinks that %s is %q, want %q", seed, i, p.Key.Name, there[p.Key.Name], p.Holder)
					}
					delete(there, p.Key.Name)
				}
				if len(there) > 0 {
					t.Errorf("seed %d: subscriber %d has %v besides", seed, i, there)
				}
			}
			w.stop()
		})
	}
}

// follow subscribes and returns the holders that are there, by name.
func (w *world) follow(seed uint64) map[string]string {
	there := map[string]string{}
	w.view.Subscribe(func(e identity.Event) {
		name, holder := e.Peer.Key.Name, e.Peer.Holder
		switch was, ok := there[name]; e.Type {
		case identity.Joined:
			if ok {
				w.t.Errorf("seed %d: %s joined twice", seed, name)
			}
			there[name] = holder
		case identity.Left:
			if !ok || was != holder || e.Peer.State != identity.Lost {
				w.t.Errorf("seed %d: %s of %q left as %s, want the one that joined, %q", seed, name, holder, e.Peer.State, was)
			}
			delete(there, name)
		default:
			if was != holder {
				w.t.Errorf("seed %d: %s of %s, which is not there", seed, e.Type, name)
			}
		}
	})
	return there
}

// step does something at random.
func (w *world) step(random *rand.Rand) {
	name := fmt.Sprint("p", random.IntN(6))
	switch random.IntN(10) {
	case 0:
		w.write(name, fmt.Sprint(name, "-", random.IntN(3)))
	case 1:
		w.remove(name)
	case 2:
		w.write(name, "")
	case 3:
		w.set(cutWatch)
	case 4:
		w.relist()
	case 5:
		time.Sleep(time.Duration(random.IntN(50)) * time.Second)
		synctest.Wait()
	default:
		w.renew(name)
	}
}
