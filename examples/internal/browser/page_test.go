// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/belayproject/belay/examples/internal/controller/page/pagetest"
	"github.com/belayproject/belay/internal/tier"
)

// The map has each node once, by stage, tells kinds apart without colour, is live, and asks for nothing from elsewhere.
func TestMap(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBed(t, 1000, 1280, 900)
	for node, want := range map[int]string{0: "done", 2: "flight", 3: "broken", 4: "failed", 5: "deferred", 900: "waiting"} {
		if kind := is[string](b, cell(node)+".dataset.kind"); kind != want {
			t.Errorf("node %d is %q, want %q", node, kind, want)
		}
	}
	looks := is[int](b, `new Set(["done", "flight", "waiting", "deferred", "failed", "broken"].map((k) => {
		const e = document.querySelector('#map [data-kind="' + k + '"]'), s = getComputedStyle(e);
		return getComputedStyle(e, "::before").content + s.borderTopLeftRadius + (s.backgroundColor === "rgba(0, 0, 0, 0)");
	})).size`)
	if looks != 6 {
		t.Errorf("without colour the six kinds look like %d, want 6", looks)
	}
	if titles := is[string](b, `[...document.querySelectorAll("#map h3")].map((e) => e.textContent).join("\n")`); !strings.Contains(titles, "Stage 1: canary - 2 done\nStage 2: rest - ") {
		t.Errorf("the stages are %q", titles)
	}
	b.changes(900, "v9")
	b.chooses("paint", "runs")
	b.becomes(`document.getElementById("legend").textContent.includes("v9 (1)")`)
	b.prefers("prefers-color-scheme", "dark")
	b.shot("fleet-page-dark")
	if ground := is[string](b, "getComputedStyle(document.body).backgroundColor"); ground != "rgb(20, 23, 26)" {
		t.Errorf("in the dark the ground is %s", ground)
	}
	if elsewhere := is[int](b, `performance.getEntriesByType("resource").filter((e) => !e.name.startsWith(location.origin)).length`); elsewhere != 0 {
		t.Errorf("%d requests go elsewhere, want none", elsewhere)
	}
	b.clean()
}

// Whoever has a keyboard alone comes to every node, its story, the search, and back to where they were.
func TestKeyboardAlone(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBed(t, 200, 1280, 900)
	focused := func() string {
		return is[string](b, `document.activeElement.dataset.name || document.activeElement.id`)
	}
	for range 20 {
		if focused() == pagetest.NodeName(0) {
			break
		}
		b.does(chromedp.KeyEvent(kb.Tab))
	}
	steps := []struct{ key, want string }{
		{kb.ArrowRight, pagetest.NodeName(1)}, {kb.ArrowRight, pagetest.NodeName(2)}, {kb.ArrowUp, pagetest.NodeName(1)}, {kb.End, pagetest.NodeName(198)},
		{kb.Home, pagetest.NodeName(0)}, {kb.ArrowDown, pagetest.NodeName(2)}, {kb.ArrowRight, pagetest.NodeName(3)},
	}
	for _, s := range steps {
		b.does(chromedp.KeyEvent(s.key))
		if got := focused(); got != s.want {
			t.Fatalf("after %q the focus is on %q, want %q", s.key, got, s.want)
		}
	}
	if stops := is[int](b, `document.querySelectorAll('#map [tabindex="0"]').length`); stops != 1 {
		t.Errorf("the map has %d stops for Tab, want 1", stops)
	}
	b.does(chromedp.KeyEvent(kb.Enter))
	b.becomes(`document.getElementById("story").open && document.getElementById("story-body").textContent.includes("kubectl belay why node-0003")`)
	b.does(chromedp.KeyEvent(kb.Escape))
	b.becomes(`!document.getElementById("story").open`)
	if got := focused(); got != pagetest.NodeName(3) {
		t.Errorf("after the story the focus is on %q, want %q", got, pagetest.NodeName(3))
	}
	// That the story is gone is heard a moment later: who has gone on by then is not called back.
	b.does(chromedp.KeyEvent(kb.Enter))
	b.becomes(`document.getElementById("story").open`)
	b.run(`(() => {
		const story = document.getElementById("story");
		story.addEventListener("close", () => { story.dataset.heard = "yes"; }, { once: true });
		story.close();
		document.getElementById("search").focus();
	})()`)
	b.becomes(`document.getElementById("story").dataset.heard === "yes"`)
	if got := focused(); got != "search" {
		t.Errorf("the focus went from the search to %q as the story was heard to be gone", got)
	}
	b.run(`document.activeElement.blur()`)
	// The driver sends a sign apart from its key, so that it is typed though the page has taken the key: what is looked for is set.
	b.does(chromedp.KeyEvent("/"))
	if got := focused(); got != "search" {
		t.Errorf("after / the focus is on %q, want the search", got)
	}
	b.chooses("search", "broken")
	b.becomes(`document.getElementById("found").textContent === "1 of 199"`)
	b.chooses("as", "list")
	b.becomes(`document.querySelectorAll("#list tbody tr").length === 1`)
	b.clean()
}

// A story that is opened right after another was closed stays open, marked and told: that the other is gone is heard later, at the next frame.
func TestStoryAfterStory(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBed(t, 100, 1280, 900)
	b.run(cell(2) + ".click()")
	b.says(storyText, "shop/cart-0", true)
	b.run(`(() => {
		const story = document.getElementById("story");
		story.addEventListener("close", () => { story.dataset.heard = "yes"; }, { once: true });
		story.close();
		` + cell(3) + `.click();
	})()`)
	b.becomes(`document.getElementById("story").dataset.heard === "yes"`)
	b.says(storyText, "kubectl belay why node-0003", true)
	if !is[bool](b, `document.getElementById("story").open && location.hash.endsWith("/node-0003") && `+cell(3)+`.getAttribute("aria-selected") === "true"`) {
		t.Error("the story of node-0003 is told, and its node is not the one that is marked and addressed")
	}
	b.clean()
}

// A story is told on a click, is told anew when the node changes, and has the commands to copy.
func TestStory(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBed(t, 200, 1280, 900)
	b.run(cell(2) + ".click()")
	b.becomes(`document.getElementById("story-body").textContent.includes("shop/cart-0")`)
	b.shot("fleet-page-story")
	text := is[string](b, `document.getElementById("story-body").innerText`)
	for _, want := range []string{"In rollout fleet, which is Running", "kubectl belay abort fleet", "can't be evicted now: shop/cart-0 (budget cart)", "got its slot, for attempt 3"} {
		if !strings.Contains(text, want) {
			t.Errorf("the story is %q, want %q in it", text, want)
		}
	}
	if place := is[string](b, "location.hash"); place != "#/fleet/node-0002" {
		t.Errorf("the address is %q, want the node in it", place)
	}
	b.changes(2, "v7")
	b.becomes(`document.getElementById("story-body").innerText.includes("v7")`)
	b.run(`document.querySelector("#story-body .commands button").click()`)
	b.becomes(`/Copied|Selected/.test(document.querySelector("#story-body .commands button").textContent)`)
	b.clean()
}

// On a phone nothing is wider than the screen, and a cell is large enough for a finger.
func TestPhone(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBed(t, 200, 390, 844)
	b.becomes(keysShow)
	b.touches()
	b.becomes("!(" + keysShow + ")")
	b.run(`document.getElementById("nodes").scrollIntoView()`)
	b.shot("fleet-page-phone")
	for _, what := range []string{"map", "list", "story"} {
		switch what {
		case "list":
			b.chooses("as", "list")
			b.becomes(`document.querySelectorAll("#list tbody tr").length > 100`)
		case "story":
			b.run(`document.querySelector("#list tbody button").click()`)
			b.becomes(`document.getElementById("story-body").textContent.includes("What happened")`)
		}
		if width := is[int](b, `Math.max(document.documentElement.scrollWidth, document.getElementById("story").scrollWidth)`); width > 390 {
			t.Errorf("the %s is %d pixels wide on a screen of 390", what, width)
		}
	}
	b.run(`document.getElementById("story").close(); document.getElementById("waits").open = true`)
	b.unbroken()
	b.chooses("as", "map")
	if size := is[float64](b, cell(0)+".getBoundingClientRect().width"); size < 22 {
		t.Errorf("a cell is %g pixels wide, want 22 at least", size)
	}
	b.clean()
}

// keysShow: it is told what keys do.
const keysShow = `getComputedStyle(document.getElementById("keys")).display !== "none"`

// unbroken fails the test where a label is on another line than what it is of, or where a reason, a heading of a column or the word before them is broken.
func (b *bed) unbroken() {
	b.t.Helper()
	apart := is[string](b, `[...document.querySelectorAll("label")].filter((l) => {
		const a = l.getBoundingClientRect(), c = l.control.getBoundingClientRect();
		return Math.abs(a.top + a.height / 2 - c.top - c.height / 2) > 5 || c.left < a.right;
	}).map((l) => l.textContent).join()`)
	if apart != "" {
		b.t.Errorf("the labels %q are apart from what they are of", apart)
	}
	broken := is[string](b, `[...document.querySelectorAll("#waits th, #waits td:first-child, #list th, #list td:nth-child(4)")].filter((e) => {
		const r = document.createRange();
		r.selectNodeContents(e);
		return new Set([...r.getClientRects()].map((c) => Math.round(c.top))).size > 1;
	}).map((e) => e.textContent).join()`)
	if broken != "" {
		b.t.Errorf("in the tables are broken: %q", broken)
	}
}

// With 5,000 nodes one that changes costs a few changes of the document, and an element each is all that there is.
func TestFiveThousandNodes(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBed(t, 5000, 1280, 900)
	b.shot("fleet-page-5000")
	if all := is[int](b, `document.querySelectorAll("*").length`); all > 5400 {
		t.Errorf("the document has %d elements, want 5,400 at most", all)
	}
	b.run(`window.seen = 0; new MutationObserver((l) => { window.seen += l.length; }).observe(document.getElementById("map"), {subtree: true, childList: true, attributes: true, characterData: true})`)
	b.changes(4000, "v9")
	if seen := is[int](b, "window.seen"); seen > 20 {
		t.Errorf("a node that changes changes the map %d times, want 20 at most", seen)
	}
	b.chooses("search", "v9")
	b.becomes(`document.getElementById("found").textContent === "1 of 4999"`)
	b.clean()
}

// An address with a node in it opens its story.
func TestAddressOfANode(t *testing.T) {
	tier.System(t, tier.Browser)
	b := newBed(t, 100, 1280, 900)
	b.run(fmt.Sprintf(`location.hash = "#/fleet/%s"; location.reload()`, pagetest.NodeName(3)))
	b.becomes(`document.getElementById("story") && document.getElementById("story").open && document.getElementById("story-title").textContent === "node-0003"`)
	b.chooses("rollout", "")
	b.becomes(`document.getElementById("phase").textContent === "Nodes in no rollout" && ` + cells + ` === 1`)
	b.clean()
}
