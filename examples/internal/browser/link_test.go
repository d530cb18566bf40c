// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/examples/internal/controller/page"
	"github.com/belayproject/belay/examples/internal/controller/page/pagetest"
	"github.com/belayproject/belay/internal/tier"
)

// soon has what takes minutes take moments.
func soon() page.Options { return page.Options{Beat: 500 * time.Millisecond, Silence: 2 * time.Second} }

const (
	storyText = `document.getElementById("story-body").innerText`
	linkText  = `document.getElementById("link").textContent`
)

// says waits until a text is in an element, or not.
func (b *bed) says(of, text string, so bool) {
	b.t.Helper()
	b.becomes(fmt.Sprintf("%s.includes(%q) === %t", of, text, so))
}

// Which cluster it is stands in the title, above the page, and above the commands, which name none.
func TestWhichClusterItIs(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBed(t, 100, 1280, 900)
	b.becomes(`document.title === "prod-eu-1 - belay fleet" && document.querySelector("h1").textContent === "Fleet prod-eu-1"`)
	b.says(`document.querySelector("#verbs .where").textContent`, "a context of prod-eu-1", true)
	b.run(cell(2) + ".click()")
	b.says(storyText, "a context of prod-eu-1", true)
	b.run(`document.getElementById("story").close()`)
	// A rollout of another domain may have it: this controller doesn't know.
	b.chooses("rollout", "")
	b.says(`document.getElementById("message").textContent`, "Rollouts of other domains than those of this controller are not shown", true)
	b.run(cell(99) + ".click()")
	b.says(storyText, "It is in no rollout of the domains that this controller looks after", true)
	b.clean()
}

// That the controller does not hear from the API server is said though the page hears the controller, in the story as above it; and no end is expected then.
func TestDeafController(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBedOf(t, 100, 1280, 900, soon())
	b.run(cell(2) + ".click()")
	b.becomes(`document.getElementById("story-link").textContent === "live"`)
	b.fleet.Deaf(time.Now().Add(-20 * time.Minute))
	b.becomes(linkIs("deaf"))
	since := `new RegExp("^the controller has not heard from the API server since .*: this is how it was then$")`
	if !is[bool](b, fmt.Sprintf(`%s.test(%s) && %s.test(document.getElementById("story-link").textContent)`, since, linkText, since)) {
		t.Errorf("the link says %q", is[string](b, linkText))
	}
	if facts := is[string](b, `document.getElementById("facts").textContent`); !strings.Contains(facts, "Expected endcan't be said") {
		t.Errorf("what is expected of a fleet that is not seen: %q", facts)
	}
	b.changes(2, "v7")
	// The story, which has been told anew, is of twenty minutes ago all the same.
	b.becomes(linkText + `.includes(document.getElementById("story-at").textContent.replace("as of", "since") + ":")`)
	b.fleet.Deaf(time.Time{})
	b.becomes(linkIs("live"))
	b.clean()
}

// A line that is there and brings nothing, as that of a tunnel whose far end is gone, is lost after three beats, and tried again.
func TestLineThatHangs(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBedOf(t, 100, 1280, 900, soon())
	b.line.frozen.Store(true)
	b.becomes(linkIs("lost"))
	b.unheard(50, "v7")
	b.line.frozen.Store(false)
	b.becomes(linkIs("live"))
	b.becomes(cell(50) + `.getAttribute("aria-label").endsWith("runs v7")`)
	b.clean()
}

// That the controller is gone is said, with the time of the last contact, not of the last change.
func TestLostConnection(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBedOf(t, 100, 1280, 900, soon())
	b.run(`window.then = Date.now()`)
	b.becomes(`Date.now() - window.then > 8000`)
	b.run(`window.cut = Date.now()`)
	b.server.CloseClientConnections()
	b.server.Listener.Close()
	b.becomes(linkIs("lost") + ` && document.getElementById("link").textContent.startsWith("not connected: this is how it was at")`)
	if !is[bool](b, `[-1, 0, 1, 2, 3, 4].some((s) => `+linkText+`.endsWith("at " + new Date(window.cut - s * 1000).toLocaleTimeString()))`) {
		t.Errorf("eight seconds after the last change, and at once after the last contact, it says %q", is[string](b, linkText))
	}
	if n := is[int](b, cells); n != 99 {
		t.Errorf("%d cells are left, want 99", n)
	}
}

// A story that is open over a time without a connection is told anew after it, and the cell that had the focus has it still.
func TestConnectionComesBack(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBedOf(t, 100, 1280, 900, soon())
	b.run(cell(2) + ".click()")
	b.says(storyText, "shop/cart-0", true)
	b.cut()
	b.becomes(`document.getElementById("story-link").textContent.startsWith("not connected")`)
	b.fleet.Drained()
	b.fleet.Runs(2, "v7")
	b.wakes()
	b.mend()
	b.says(storyText, "v7", true)
	b.says(storyText, "shop/cart-0", false)
	if !is[bool](b, cell(2)+`.getAttribute("aria-selected") === "true"`) {
		t.Error("the node of the story is not marked any more")
	}
	b.run(`document.getElementById("story").close(); window.held = ` + cell(3) + `; window.held.focus()`)
	b.cut()
	b.fleet.Runs(4, "v8")
	b.wakes()
	b.mend()
	b.becomes(cell(4) + `.getAttribute("aria-label").endsWith("runs v8")`)
	if !is[bool](b, `document.activeElement === window.held && window.held.isConnected`) {
		t.Error("the cell that had the focus does not have it any more")
	}
}

// A story goes on though the cell of its node does not change; and what has not been answered in time is said, above what is known.
func TestStoryGoesOn(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBed(t, 100, 1280, 900)
	b.run(`const plain = AbortSignal.timeout; AbortSignal.timeout = (ms) => { window.patience = ms; return plain.call(AbortSignal, window.brief || ms); }`)
	b.run(cell(2) + ".click()")
	b.says(storyText, "shop/cart-0", true)
	b.fleet.Drained()
	b.says(storyText, "no pod is on it that would have to leave", true)
	b.line.mute.Store(true)
	b.run(`window.brief = 100`)
	b.says(storyText, "The controller does not answer", true)
	b.says(storyText, "no pod is on it that would have to leave", true)
	if ms := is[int](b, "window.patience"); ms != 20000 {
		t.Errorf("an answer has %d ms, want 20000", ms)
	}
	b.line.mute.Store(false)
	b.run(`window.brief = 0`)
	b.says(storyText, "The controller does not answer", false)
}

// A page that nobody looks at gives its connection back, as a browser has six for all its tabs, and is live as soon as somebody looks.
func TestPageThatNobodyLooksAt(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBedOf(t, 100, 1280, 900, soon())
	b.listens(1)
	b.run(`window.away = true; Object.defineProperty(document, "hidden", { get: () => window.away }); document.dispatchEvent(new Event("visibilitychange"))`)
	b.listens(0)
	b.unheard(50, "v7")
	b.run(`window.away = false; document.dispatchEvent(new Event("visibilitychange"))`)
	b.becomes(linkIs("live") + " && " + cell(50) + `.getAttribute("aria-label").endsWith("runs v7")`)
	b.listens(1)
	b.clean()
}

// After an upgrade of the controller the page is loaded anew: the script would not know what it is sent.
func TestControllerOfAnotherVersion(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBedOf(t, 100, 1280, 900, soon())
	b.run(`window.old = true`)
	b.run(cell(3) + ".click()")
	b.says(storyText, "kubectl belay why", true)
	b.line.other.Store(true)
	b.becomes(`!window.old && document.getElementById("story").open && document.getElementById("story-title").textContent === "node-0003"`)
	b.becomes(linkIs("live"))
	b.run(`window.old = true`)
	b.becomes(cells + " === 99")
	b.clean()
}

// An address that stands for nothing opens the page.
func TestAddressOfNothing(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBed(t, 100, 1280, 900)
	for _, hash := range []string{"#/%E0", "#/constructor", "#/fleet/%E0"} {
		b.run(fmt.Sprintf(`window.old = true; location.hash = %q; location.reload()`, hash))
		b.becomes("!window.old && " + cells + " === 99")
		b.run(`location.hash = "#/toString"`)
		b.becomes(`document.getElementById("rollout").value === "fleet"`)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.errors {
		if !strings.Contains(e, "404") { // of a node that is not there
			t.Errorf("the browser complains: %q", e)
		}
	}
}

// What changes next to it takes neither focus nor click from what somebody is at: a row of the list, a command, a command of the story.
func TestNothingIsTakenAway(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBed(t, 200, 1280, 900)
	held := func(what, find string, change func(revision string)) {
		t.Helper()
		b.run(fmt.Sprintf(`window.held = %s; window.held.focus()`, find))
		for _, revision := range []string{"v7", "v8"} {
			change(what + revision)
			if !is[bool](b, `document.activeElement === window.held && window.held.isConnected`) {
				t.Errorf("%s lost the focus to %q", what, is[string](b, `document.activeElement.outerHTML.slice(0, 200)`))
			}
		}
	}
	speaks := func(text string) {
		b.fleet.Says(text)
		b.wakes()
		b.says(`document.getElementById("message").textContent`, text, true)
	}
	b.run(`document.getElementById("verbs").open = true`)
	held("a command", `document.querySelector("#verbs button")`, speaks)
	b.run(cell(2) + ".click()")
	b.says(storyText, "shop/cart-0", true)
	held("a command of the story", `document.querySelector("#story-body .commands li:nth-child(2) button")`, func(revision string) {
		b.changes(2, strings.ReplaceAll(revision, " ", "-"))
		b.says(storyText, strings.ReplaceAll(revision, " ", "-"), true)
	})
	b.run(`document.getElementById("story").close()`)
	b.chooses("as", "list")
	row := `[...document.querySelectorAll("#list tbody tr")].find((r) => r.textContent.includes("` + pagetest.NodeName(9) + `"))`
	b.becomes(row)
	held("a row", row+`.querySelector("button")`, func(revision string) {
		b.fleet.Runs(8, revision)
		b.changes(9, revision)
		b.says(row+".textContent", revision, true)
	})
	b.clean()
}
