// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/belayproject/belay/examples/internal/controller/page"
	"github.com/belayproject/belay/examples/internal/controller/page/pagetest"
	"github.com/belayproject/belay/internal/tier"
)

const (
	// browserVariable names the browser, requireVariable says that there has to be one, shotsVariable where pictures go.
	browserVariable = "BELAY_CHROMIUM"
	requireVariable = "BELAY_REQUIRE_BROWSER"
	shotsVariable   = "BELAY_SHOTS"
	// patience bounds each wait.
	patience = 30 * time.Second
)

// A bed is the page in a browser.
type bed struct {
	t      *testing.T
	ctx    context.Context
	fleet  *pagetest.Fleet
	wake   chan struct{}
	line   *line
	server *httptest.Server

	mu     sync.Mutex
	errors []string // of the script, the policy and the network
}

// newBed serves a fleet of n nodes, and shows it in a window of that size.
func newBed(t *testing.T, n int, width, height int64) *bed {
	t.Helper()
	return newBedOf(t, n, width, height, page.Options{})
}

// newBedOf is one whose page has options.
func newBedOf(t *testing.T, n int, width, height int64, o page.Options) *bed {
	t.Helper()
	program := find(t)
	b := &bed{t: t, fleet: pagetest.New(t, n), wake: make(chan struct{}, 1)}
	o.Source, o.Every, o.Name = b.fleet, 100*time.Millisecond, "prod-eu-1"
	hub, err := page.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = hub.Run(ctx, b.wake) })
	b.line = &line{to: hub.Handler()}
	b.server = httptest.NewServer(b.line)
	allocator, stop := chromedp.NewExecAllocator(ctx, options(t, program)...)
	b.ctx, _ = chromedp.NewContext(allocator, chromedp.WithListener(b.hear))
	t.Cleanup(func() {
		_ = chromedp.Cancel(b.ctx)
		stop()
		cancel()
		b.server.CloseClientConnections()
		b.server.Close()
		done.Wait()
	})
	b.does(chromedp.EmulateViewport(width, height), chromedp.Navigate(b.server.URL+"/"))
	b.becomes(cells + fmt.Sprintf(" === %d", n-1)) // the last one is in no rollout
	return b
}

// find is the browser.
func find(t *testing.T) string {
	t.Helper()
	tier.Require(t)
	name := os.Getenv(browserVariable)
	if name == "" {
		name = "chromium"
	}
	program, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv(requireVariable) != "":
		t.Fatalf("there is no browser, and %s is set: %v", requireVariable, err)
	default:
		t.Skipf("there is no browser: install chromium, or name one in %s: %v", browserVariable, err)
	}
	return program
}

// options are those of a browser that speaks to nobody but the page. Root has no sandbox.
func options(t *testing.T, program string) []chromedp.ExecAllocatorOption {
	t.Helper()
	all := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program), chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	if os.Geteuid() == 0 {
		all = append(all, chromedp.NoSandbox)
	}
	return all
}

// hear notes what the browser complains about: what the policy of the page forbids is among it.
func (b *bed) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			b.errors = append(b.errors, e.Entry.Text)
		}
	}
}

// clean fails the test if the browser has complained.
func (b *bed) clean() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.errors) > 0 {
		b.t.Errorf("the browser complains: %q", b.errors)
	}
}

func (b *bed) does(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// is is the value of an expression in the page.
func is[T any](b *bed, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// run has the page carry out a script.
func (b *bed) run(script string) {
	b.t.Helper()
	is[bool](b, "(() => { "+script+"; return true; })()")
}

// becomes waits until an expression is true. The driver's own way to wait is one that the policy of the page forbids.
func (b *bed) becomes(expression string) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		// Between two documents there is nothing to ask.
		if so, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")")); err == nil && so {
			return
		}
		if time.Now().After(deadline) {
			b.clean()
			b.t.Fatalf("after %s it is still not so that %s; the page says %q", patience, expression, is[string](b, "document.body.innerText.slice(0, 600)"))
		}
		<-look.C
	}
}

// chooses has a select or an input have a value, as somebody would.
func (b *bed) chooses(id, value string) {
	b.t.Helper()
	b.run(fmt.Sprintf(`const e = document.getElementById(%q); e.value = %q; e.dispatchEvent(new Event(e.tagName === "SELECT" ? "change" : "input", {bubbles: true}))`, id, value))
}

// changes has a node run a revision.
func (b *bed) changes(node int, revision string) {
	b.t.Helper()
	b.fleet.Runs(node, revision)
	b.wakes()
	b.becomes(cell(node) + fmt.Sprintf(`.getAttribute("aria-label").endsWith("runs %s")`, revision))
}

// wakes says that something has changed.
func (b *bed) wakes() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// prefers has the browser say what its user prefers.
func (b *bed) prefers(feature, value string) {
	b.t.Helper()
	b.does(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}})
		return err
	}))
}

// touches has the browser say that its screen is touched, and that there is nothing else to point with.
func (b *bed) touches() {
	b.t.Helper()
	b.does(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true})
		return err
	}))
}

// shot writes a picture, where somebody wants one.
func (b *bed) shot(name string) {
	b.t.Helper()
	dir := os.Getenv(shotsVariable)
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil { //nolint:gosec // as any file of the tree
		b.t.Fatal(err)
	}
}

// cells is how many are on the map.
const cells = `document.querySelectorAll("#map .cell").length`

// cell is the element of a node on the map.
func cell(i int) string {
	return fmt.Sprintf(`document.querySelector('#map [data-name="%s"]')`, pagetest.NodeName(i))
}
