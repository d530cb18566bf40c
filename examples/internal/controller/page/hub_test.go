// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/examples/internal/controller/page"
	"github.com/belayproject/belay/examples/internal/controller/page/pagetest"
)

// reader is a browser: it puts changes on the model that it has. A slow one takes as long for each write.
type reader struct {
	header http.Header
	code   int
	slow   time.Duration

	mu      sync.Mutex
	model   page.Model
	models  int
	changes int
	beats   int
	beat    page.Beat // the last one
	fail    error
}

func (r *reader) Header() http.Header  { return r.header }
func (r *reader) WriteHeader(code int) { r.code = code }
func (r *reader) Flush()               {}

func (r *reader) Write(raw []byte) (int, error) {
	<-time.After(r.slow)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return 0, r.fail
	}
	event, data := "", ""
	for line := range strings.Lines(string(raw)) {
		event = orCut(line, "event: ", event)
		data = orCut(line, "data: ", data)
	}
	switch {
	case event == "model":
		r.models++
		r.model = page.Model{}
		return len(raw), json.Unmarshal([]byte(data), &r.model)
	case event == "change":
		r.changes++
		var c page.Change
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			return 0, err
		}
		r.model = r.model.Apply(c)
	case event == "beat":
		r.beats++
		r.beat = page.Beat{}
		return len(raw), json.Unmarshal([]byte(data), &r.beat)
	}
	return len(raw), nil
}

func orCut(line, prefix, otherwise string) string {
	if rest, found := strings.CutPrefix(line, prefix); found {
		return strings.TrimSpace(rest)
	}
	return otherwise
}

// refused is the code that came after all that could go on has.
func (r *reader) refused() int {
	synctest.Wait()
	return r.code
}

// saw is how many models and changes have come, and what the node runs by them.
func (r *reader) saw(node int) (models, changes int, runs string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.models, r.changes, r.model.Nodes["fleet"][pagetest.NodeName(node)].Runs
}

// bed is a hub that runs, in a bubble.
type bed struct {
	t     *testing.T
	ctx   context.Context
	fleet *pagetest.Fleet
	hub   *page.Hub
	wake  chan struct{}
}

func newBed(t *testing.T, o page.Options) *bed {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := &bed{t: t, ctx: ctx, fleet: pagetest.New(t, 12), wake: make(chan struct{}, 1)}
	o.Source = b.fleet
	var err error
	if b.hub, err = page.New(o); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		if err := b.hub.Run(ctx, b.wake); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return b
}

// reads begins to read the events until leave is called.
func (b *bed) reads(slow time.Duration) (r *reader, leave func()) {
	b.t.Helper()
	r = &reader{header: http.Header{}, slow: slow, code: http.StatusOK}
	ctx, cancel := context.WithCancel(b.ctx)
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/events", nil)
	var done sync.WaitGroup
	done.Go(func() { b.hub.Handler().ServeHTTP(r, request) })
	leave = func() { cancel(); done.Wait() }
	b.t.Cleanup(leave)
	return r, leave
}

// changes has a node run something, and lets time pass.
func (b *bed) changes(node int, revision string, pass time.Duration) {
	b.fleet.Runs(node, revision)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	time.Sleep(pass)
	synctest.Wait()
}

// A reader gets the whole first, then what changes, and has the same as one who comes later.
func TestReadersGetChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, page.Options{})
		first, _ := b.reads(0)
		synctest.Wait()
		if models, changes, runs := first.saw(8); models != 1 || changes != 0 || runs != "v1" {
			t.Errorf("at first it saw %d models, %d changes, and node 8 running %q; want 1, 0, v1, and at once", models, changes, runs)
		}
		b.changes(8, "v2", 2*time.Second)
		if models, changes, runs := first.saw(8); models != 1 || changes != 1 || runs != "v2" {
			t.Errorf("after the change it saw %d models, %d changes, and node 8 running %q; want 1, 1, v2", models, changes, runs)
		}
		second, _ := b.reads(0)
		synctest.Wait()
		if models, _, _ := second.saw(8); models != 1 || !reflect.DeepEqual(second.model, first.model) {
			t.Errorf("who comes later has %d models, or another one", models)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if first.beats < 3 || first.changes != 1 {
			t.Errorf("in a quiet minute it heard %d beats and %d changes, want 3 at least, and none", first.beats, first.changes-1)
		}
	})
}

// A reader who is slow gets what has changed meanwhile as one change, holds up nobody, and ends up with the same.
func TestSlowReaderGetsOneChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, page.Options{})
		slow, _ := b.reads(15 * time.Second)
		fast, _ := b.reads(0)
		time.Sleep(31 * time.Second) // the slow one has the model
		for i := range 20 {
			b.changes(8+i%2, fmt.Sprintf("w%d", i), 2*time.Second)
		}
		if _, changes, runs := fast.saw(9); changes != 20 || runs != "w19" {
			t.Errorf("the fast one saw %d changes, and node 9 running %q; want 20, w19", changes, runs)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		models, changes, runs := slow.saw(9)
		if models != 1 || changes < 1 || changes > 5 || runs != "w19" || !reflect.DeepEqual(slow.model, fast.model) {
			t.Errorf("the slow one saw %d models, %d changes, and node 9 running %q; want 1, 1 to 5, w19, and the same model as the fast one", models, changes, runs)
		}
	})
}

// A pipe is a listener whose connections hold nothing: who does not read holds up the writer at once.
type pipe chan net.Conn

func (p pipe) Accept() (net.Conn, error) {
	c, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipe) Close() error   { close(p); return nil }
func (p pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// Who does not read at all is cut off after [page.WriteTime], and makes room.
func TestStuckReaderIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, page.Options{Readers: 1})
		connections := make(pipe)
		server := &http.Server{Handler: b.hub.Handler()}
		var done sync.WaitGroup
		done.Go(func() { _ = server.Serve(connections) })
		browser, far := net.Pipe()
		connections <- far
		t.Cleanup(func() { _ = server.Close(); _ = browser.Close(); done.Wait() })
		if _, err := fmt.Fprint(browser, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(page.WriteTime / 2)
		synctest.Wait()
		if second, _ := b.reads(0); second.refused() != http.StatusServiceUnavailable {
			t.Errorf("while the only one allowed is stuck another got %d, want %d", second.refused(), http.StatusServiceUnavailable)
		}
		time.Sleep(page.WriteTime)
		synctest.Wait()
		third, _ := b.reads(0)
		synctest.Wait()
		if models, _, _ := third.saw(8); models != 1 {
			t.Errorf("after it was cut off another saw %d models, want 1", models)
		}
	})
}

// Nothing is looked at while nobody reads, and who comes then gets what is, not what was.
func TestNothingIsDoneForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, page.Options{})
		b.changes(8, "v2", time.Hour)
		if looks := b.fleet.Looks(); looks != 0 {
			t.Errorf("%d looks without a reader, want none", looks)
		}
		_, leave := b.reads(0)
		synctest.Wait()
		leave()
		looks := b.fleet.Looks()
		b.changes(8, "v3", time.Hour)
		if more := b.fleet.Looks() - looks; more != 0 {
			t.Errorf("%d looks after the last reader has left, want none", more)
		}
		r, _ := b.reads(0)
		synctest.Wait()
		if models, changes, runs := r.saw(8); models != 1 || changes != 0 || runs != "v3" {
			t.Errorf("who came then saw %d models, %d changes, and node 8 running %q; want 1, 0, v3", models, changes, runs)
		}
	})
}

// However much changes, models are made once in a while; and what changes with the time alone is seen, too.
func TestModelsAreNotMadeTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, page.Options{})
		b.reads(0)
		synctest.Wait()
		before := b.fleet.Looks()
		for range 100 {
			b.changes(8, "v2", 100*time.Millisecond)
		}
		if looks := b.fleet.Looks() - before; looks < 9 || looks > 11 {
			t.Errorf("%d looks in ten seconds full of changes, want about 10", looks)
		}
		before = b.fleet.Looks()
		time.Sleep(time.Minute)
		synctest.Wait()
		if looks := b.fleet.Looks() - before; looks < 5 || looks > 7 {
			t.Errorf("%d looks in a minute in which nothing changed, want about 6", looks)
		}
	})
}

// Before the fleet was seen whole a reader waits, and a story is refused.
func TestFleetThatIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, page.Options{})
		b.fleet.Blind(true)
		r, _ := b.reads(0)
		synctest.Wait()
		if _, err := b.hub.Story(pagetest.NodeName(2)); !errors.Is(err, page.ErrNotSeen) {
			t.Errorf("a story of what is not seen: %v, want %v", err, page.ErrNotSeen)
		}
		b.fleet.Blind(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if models, _, _ := r.saw(8); models != 1 {
			t.Errorf("%d models after it was seen, want 1", models)
		}
	})
}

// More readers than allowed are sent away with the time to come back, and have room when one has left. One whose connection fails leaves.
func TestReadersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, page.Options{Readers: 2})
		_, leave := b.reads(0)
		broken, _ := b.reads(0)
		synctest.Wait()
		third, _ := b.reads(0)
		synctest.Wait()
		if third.code != http.StatusServiceUnavailable || third.header.Get("Retry-After") == "" {
			t.Errorf("the third of two got %d, Retry-After %q", third.code, third.header.Get("Retry-After"))
		}
		leave()
		broken.mu.Lock()
		broken.fail = errors.New("it is gone")
		broken.mu.Unlock()
		time.Sleep(time.Minute) // a beat has failed
		synctest.Wait()
		for range 2 {
			r, _ := b.reads(0)
			time.Sleep(time.Second)
			synctest.Wait()
			if models, _, _ := r.saw(8); models != 1 {
				t.Errorf("with room again, a reader saw %d models, code %d; want 1", models, r.code)
			}
		}
	})
}

// A Hub needs a source, and durations that go forward.
func TestNewRefuses(t *testing.T) {
	if _, err := page.New(page.Options{}); err == nil || !strings.Contains(err.Error(), "source must be set") {
		t.Errorf("without a source: %v", err)
	}
	if _, err := page.New(page.Options{Source: pagetest.New(t, 12), Beat: -1}); err == nil || !strings.Contains(err.Error(), "must not be negative") {
		t.Errorf("with a negative beat: %v", err)
	}
}
