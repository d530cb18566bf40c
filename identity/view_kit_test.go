// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/identity"
)

const (
	space = "members" // the namespace of simulated Leases
	own   = "me"      // the canary among them
	beat  = 10 * time.Second
)

func newContext(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

func keyTo(name string) types.NamespacedName { return keyIn(space, name) }

func keyIn(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// ofBubble is the clock of a bubble, in both its ways.
type ofBubble struct{ start time.Time }

func (ofBubble) Now() time.Time           { return time.Now() }
func (c ofBubble) Elapsed() time.Duration { return time.Since(c.start) }
func (ofBubble) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// hub keeps Leases as an API server does, with its rules of UID and resourceVersion, and is the Source and the Canary of one view.
type hub struct {
	clock ofBubble

	mu       sync.Mutex
	version  int
	stored   map[string]*coordinationv1.Lease
	shown    map[string]*coordinationv1.Lease // as the view's informer has them
	handlers map[*registered]cache.ResourceEventHandler
	cut      bool          // the watch hangs
	lag      time.Duration // of the watch
	down     bool          // the server answers nobody
	synced   atomic.Int64  // up to which version the informer has come

	sentMu sync.Mutex // these are the canary's
	silent bool       // it has not got its answers
	sent   map[string]time.Duration
}

type registered struct {
	cache.ResourceEventHandlerRegistration
}

func newHub() *hub {
	return &hub{
		clock: ofBubble{time.Now()}, stored: map[string]*coordinationv1.Lease{}, shown: map[string]*coordinationv1.Lease{},
		handlers: map[*registered]cache.ResourceEventHandler{}, sent: map[string]time.Duration{},
	}
}

// AddEventHandler shows the handler what there is.
func (h *hub) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, lease := range h.shown {
		handler.OnAdd(lease, true)
	}
	r := &registered{}
	h.handlers[r] = handler
	return r, nil
}

func (h *hub) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.handlers, handle.(*registered))
	return nil
}

func (h *hub) Key() types.NamespacedName { return keyTo(own) }

func (h *hub) Written(version string) (time.Duration, bool) {
	h.sentMu.Lock()
	defer h.sentMu.Unlock()
	sent, ok := h.sent[version]
	if !ok || h.silent {
		return 0, false
	}
	return h.clock.Elapsed() - sent, true
}

// write stores the next version of a Lease, and is false while the server is down.
func (h *hub) write(name, holder string, changes ...func(*coordinationv1.Lease)) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.put(name, holder, changes...)
}

// renew writes as the holder that there is. The canary knows when it has sent that.
func (h *hub) renew(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	holder := name
	if old := h.stored[name]; old != nil {
		holder = *old.Spec.HolderIdentity
	}
	if name == own && !h.down {
		h.sentMu.Lock()
		h.sent[strconv.Itoa(h.version+1)] = h.clock.Elapsed()
		h.sentMu.Unlock()
	}
	h.put(name, holder)
}

// edit stores the next version of a Lease as somebody does who is not its holder.
func (h *hub) edit(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.put(name, *h.stored[name].Spec.HolderIdentity, func(l *coordinationv1.Lease) {
		l.Spec.RenewTime, l.Labels = h.stored[name].Spec.RenewTime, map[string]string{"edited": "yes"}
	})
}

// put is write for who holds the mutex.
func (h *hub) put(name, holder string, changes ...func(*coordinationv1.Lease)) bool {
	if h.down {
		return false
	}
	h.version++
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name, UID: types.UID(fmt.Sprint("uid-", h.version))}}
	if old := h.stored[name]; old != nil {
		lease = old.DeepCopy()
	}
	lease.ResourceVersion = strconv.Itoa(h.version)
	lease.Spec.HolderIdentity = &holder
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Unix(int64(h.version), 0)}
	for _, change := range changes {
		change(lease)
	}
	h.stored[name] = lease
	if !h.cut {
		h.synced.Store(int64(h.version))
	}
	h.show(name, lease)
	return true
}

// live renews a Lease until ctx ends, for the first time after first.
func (h *hub) live(ctx context.Context, name string, first, every time.Duration) {
	go func() {
		for wait := first; ; wait = every {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
				h.renew(name)
			}
		}
	}()
}

// Delete deletes a Lease if the preconditions are met.
func (h *hub) Delete(_ context.Context, name string, o metav1.DeleteOptions) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	leases := coordinationv1.Resource("leases")
	lease := h.stored[name]
	switch p := o.Preconditions; {
	case h.down:
		return context.DeadlineExceeded
	case lease == nil:
		return apierrors.NewNotFound(leases, name)
	case p != nil && (p.UID != nil && *p.UID != lease.UID || p.ResourceVersion != nil && *p.ResourceVersion != lease.ResourceVersion):
		return apierrors.NewConflict(leases, name, fmt.Errorf("another version"))
	}
	h.version++
	if len(lease.Finalizers) > 0 {
		lease = lease.DeepCopy()
		lease.ResourceVersion, lease.DeletionTimestamp = strconv.Itoa(h.version), &metav1.Time{Time: time.Now()}
		h.stored[name] = lease
		h.show(name, lease)
		return nil
	}
	delete(h.stored, name)
	h.show(name, nil)
	return nil
}

func (h *hub) remove(name string) { _ = h.Delete(context.Background(), name, metav1.DeleteOptions{}) }

// show lets the view see a version, nil for a deletion, as late as the watch is.
func (h *hub) show(name string, lease *coordinationv1.Lease) {
	switch {
	case h.cut:
	case h.lag > 0:
		time.AfterFunc(h.lag, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.deliver(name, lease, false)
		})
	default:
		h.deliver(name, lease, false)
	}
}

func (h *hub) deliver(name string, lease *coordinationv1.Lease, listed bool) {
	old := h.shown[name]
	for _, handler := range h.handlers {
		switch {
		case lease == nil && old == nil:
		case lease == nil && listed:
			handler.OnDelete(cache.DeletedFinalStateUnknown{Key: space + "/" + name, Obj: old})
		case lease == nil:
			handler.OnDelete(old)
		case old == nil:
			handler.OnAdd(lease, false)
		default:
			handler.OnUpdate(old, lease)
		}
	}
	if h.shown[name] = lease; lease == nil {
		delete(h.shown, name)
	}
}

// set changes how the hub behaves.
func (h *hub) set(change func(*hub)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sentMu.Lock()
	defer h.sentMu.Unlock()
	change(h)
}

// relist ends a cut, as an informer does that could not go on where it was.
func (h *hub) relist() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cut = false
	names := maps.Clone(h.shown)
	maps.Copy(names, h.stored)
	for name := range names { // in any order
		h.deliver(name, h.stored[name].DeepCopy(), true)
	}
}

// listed delivers one Lease of a list, and gives the view the time to do what it makes of it.
func (h *hub) listed(name string) {
	h.mu.Lock()
	h.deliver(name, h.stored[name].DeepCopy(), true)
	h.mu.Unlock()
	synctest.Wait()
}

// world is a hub with a view that runs, its canary, and what the view has told of the other peers, as "30s Suspected a".
type world struct {
	*hub
	t       *testing.T
	ctx     context.Context
	cancel  context.CancelFunc
	view    *identity.View
	config  identity.ViewConfig
	stopped chan error

	eventsMu sync.Mutex
	events   []string
}

// newWorld begins with the Leases that initial names, "a" held by a and "a=b" by b, and with a canary that beats.
func newWorld(t *testing.T, initial []string, changes ...func(*identity.ViewConfig)) *world {
	t.Helper()
	h := newHub()
	for _, text := range initial {
		name, holder, ok := strings.Cut(text, "=")
		if !ok {
			holder = name
		}
		h.write(name, holder)
	}
	w := &world{hub: h, t: t, stopped: make(chan error, 1)}
	w.config = identity.ViewConfig{Source: h, Canary: h, Clock: h.clock}
	for _, change := range changes {
		change(&w.config)
	}
	view, err := identity.NewView(w.config)
	if err != nil {
		t.Fatal(err)
	}
	w.view = view
	w.ctx, w.cancel = context.WithCancel(t.Context())
	go func() { w.stopped <- view.Run(w.ctx) }()
	synctest.Wait()
	view.Subscribe(w.note)
	w.live(w.ctx, own, 0, beat)
	synctest.Wait()
	return w
}

func (w *world) note(e identity.Event) {
	if e.Peer.Key.Name == own {
		return
	}
	w.eventsMu.Lock()
	defer w.eventsMu.Unlock()
	text := fmt.Sprintf("%.0fs %s %s %s", w.clock.Elapsed().Seconds(), e.Type, e.Peer.Key.Name, e.Reason)
	w.events = append(w.events, strings.TrimSpace(text))
}

// after lets time go by. The view has then done all that it has to do.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// stop ends the view.
func (w *world) stop() {
	w.t.Helper()
	w.cancel()
	synctest.Wait()
	if err := <-w.stopped; err != nil {
		w.t.Errorf("Run ended with %v, want nil", err)
	}
}

// told takes what was told since the last time.
func (w *world) told() []string {
	w.eventsMu.Lock()
	defer w.eventsMu.Unlock()
	events := w.events
	w.events = nil
	return events
}

func (w *world) wantTold(rule string, want ...string) {
	w.t.Helper()
	if got := w.told(); !slices.Equal(got, want) {
		w.t.Errorf("%s:\n got %q\nwant %q", rule, got, want)
	}
}

func (w *world) wantState(name string, want identity.State) {
	w.t.Helper()
	peer, ok := w.view.Get(keyTo(name))
	if !ok || peer.State != want {
		w.t.Errorf("at %v %s is %q, want %s", w.clock.Elapsed(), name, peer.State, want)
	}
}

func names(peers []identity.Peer) string {
	var all []string
	for _, p := range peers {
		all = append(all, p.Key.Name)
	}
	return strings.Join(all, " ")
}

// HasSynced: what is stored was handed over when the handler was added.
func (*registered) HasSynced() bool { return true }
