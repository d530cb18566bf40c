// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// The page holds the model that /events has sent, puts changes on it, and draws what has changed. All text becomes text, never HTML.
"use strict";

(() => {
  const kinds = {
    done: "done", flight: "in flight", waiting: "waiting", deferred: "put off", failed: "failed", broken: "broken", lost: "lost", outside: "in no rollout",
  };
  const passed = -2, noStage = -1; // stages without a number
  const listed = 200; // rows of the list
  const hues = 7; // revisions that have a colour of their own
  const quiet = 20000; // milliseconds between two announcements
  const patience = 20000; // milliseconds for an answer
  const away = 3000; // milliseconds that a page which nobody looks at keeps its connection
  const byId = (id) => document.getElementById(id);
  const collator = new Intl.Collator("en", { numeric: true });

  let model = { rollouts: {}, nodes: {}, meanings: {} };
  let chosen = null; // the rollout that is shown; "" is the nodes that are in none
  let order = []; // names of its nodes
  let cells = new Map(); // name to element
  let sections = new Map(); // stage to its parts
  let current = ""; // the node of the map that Tab leads to
  let told = ""; // the node whose story is open
  let spoken = { at: 0, phase: "", text: "" };
  let revisions = []; // in the order of their hues

  // make is an element with text or children.
  function make(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== undefined && value !== null) e.setAttribute(name, value);
    }
    e.append(...children.filter((c) => c !== undefined && c !== null));
    return e;
  }

  // --- what stays

  const own = (object, name) => Object.hasOwn(object || {}, name); // "constructor" is the name of a node as good as any
  const keyOf = (e) => (e.nodeType === Node.ELEMENT_NODE ? e.dataset.key : undefined);

  // settle has an element have the children that are wanted, and leaves alone what is as it should be: what is selected, has the focus or is being
  // clicked at stays so. Children with a key are known by it, others by their place.
  function settle(parent, wanted) {
    const held = document.activeElement, keys = new Set(wanted.map(keyOf)), known = new Map();
    for (const e of [...parent.childNodes]) {
      if (keyOf(e) === undefined) continue;
      if (keys.has(keyOf(e))) known.set(keyOf(e), e);
      else e.remove();
    }
    let at = parent.firstChild;
    for (const w of wanted) {
      const key = keyOf(w), e = key !== undefined ? known.get(key) : at && keyOf(at) === undefined && at.nodeName === w.nodeName ? at : null;
      if (e && e === at) at = at.nextSibling;
      else parent.insertBefore(e || w, at);
      if (e) blend(e, w);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
    hold(held);
  }

  // blend has an element be like another one.
  function blend(e, like) {
    if (e.nodeType !== Node.ELEMENT_NODE) {
      if (e.data !== like.data) e.data = like.data;
      return;
    }
    for (const { name } of [...e.attributes]) if (!like.hasAttribute(name)) e.removeAttribute(name);
    for (const { name, value } of like.attributes) if (e.getAttribute(name) !== value) e.setAttribute(name, value);
    settle(e, [...like.childNodes]);
  }

  // hold gives the focus back to what had it, and has only been moved.
  function hold(held) {
    if (held !== document.activeElement && held.isConnected) held.focus({ preventScroll: true });
  }

  // line has an element have these children: what is there already in that order is not touched.
  function line(parent, children) {
    if (children.length === parent.children.length && children.every((e, i) => e === parent.children[i])) return;
    const held = document.activeElement;
    parent.replaceChildren(...children);
    hold(held);
  }

  // say sets a text, if it is another one: a screen reader says it once.
  function say(e, text) {
    if (e.textContent !== text) e.textContent = text;
  }

  // --- the model

  // patch is RFC 7396 for one level: what is null goes.
  function patch(target, change) {
    for (const [key, value] of Object.entries(change || {})) {
      if (value === null) delete target[key];
      else target[key] = value;
    }
  }

  function cellOf(name) {
    if (!own(model.nodes[chosen], name)) return undefined;
    const c = model.nodes[chosen][name];
    return { kind: c[0], stage: c[1], state: c[2], reason: c[3], runs: c[4] };
  }

  function onModel(next) {
    model = next;
    drawRollouts();
    drawAll();
    if (told) refresh(); // what happened while nothing was heard is in no change
  }

  function onChange(change) {
    patch(model.rollouts, change.rollouts);
    patch(model.meanings, change.meanings);
    let here = null;
    for (const [rollout, nodes] of Object.entries(change.nodes || {})) {
      if (nodes === null) delete model.nodes[rollout];
      else patch((model.nodes[rollout] ||= {}), nodes);
      if (rollout === chosen) here = nodes === null ? {} : nodes;
    }
    const before = chosen;
    if (change.rollouts || change.nodes) drawRollouts();
    if (chosen !== before || (here && !model.nodes[chosen])) {
      drawAll();
      return;
    }
    if (change.rollouts) drawHead();
    if (here) drawNodes(here);
  }

  // --- which rollout

  function drawRollouts() {
    const names = Object.keys(model.rollouts).sort(collator.compare);
    if (model.nodes[""] || names.length === 0) names.push("");
    if (chosen === null || !names.includes(chosen)) {
      const wanted = place().rollout;
      chosen = names.includes(wanted) ? wanted : names[0];
    }
    const select = byId("rollout");
    if (names.join("\n") !== [...select.options].map((o) => o.value).join("\n")) {
      select.replaceChildren(...names.map((n) => make("option", { value: n }, n || "nodes in no rollout")));
    }
    select.value = chosen;
  }

  // place is what the address asks for: #/ROLLOUT/NODE, where the rollout is empty for nodes in none, and absent where nothing is asked for.
  function place() {
    const [, rollout, node] = location.hash.replace(/^#/, "").split("/").map(plain);
    return { rollout, node: node || "" };
  }

  // plain is a part of an address, as it is where it stands for no text.
  function plain(part) {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  }

  function remember() {
    history.replaceState(null, "", "#/" + encodeURIComponent(chosen) + (told ? "/" + encodeURIComponent(told) : ""));
  }

  // --- how far it is

  function drawHead() {
    const r = model.rollouts[chosen];
    byId("phase").textContent = r ? `${chosen}: ${phrase(r)}` : chosen === "" && Object.keys(model.rollouts).length > 0 ? "Nodes in no rollout" : "There is no rollout";
    byId("message").textContent = r ? r.message || "" : "Rollouts of other domains than those of this controller are not shown.";
    const error = byId("error");
    error.hidden = !(r && (r.error || (r.troubles || []).length));
    error.textContent = r ? [r.error, ...(r.troubles || [])].filter(Boolean).join("; ") : "";
    drawBar(r);
    drawFacts(r);
    drawWaits(r);
    commands(byId("verbs").querySelector("ul"), r ? r.commands || [] : []);
    byId("verbs").hidden = !r || !(r.commands || []).length;
    speak(r);
  }

  function phrase(r) {
    let text = r.phase + (r.reason && r.reason !== r.phase ? ", " + r.reason : "");
    if (r.stands) text += " - it does not go on by itself";
    else if (r.needsSomebody) text += " - something is in its way";
    else if (!r.current && r.phase !== "NotSeen") text += " (the controller has not seen the last change yet)";
    return text;
  }

  const parts = (c) => [
    ["done", c.done], ["flight", c.inFlight], ["failed", c.failed], ["broken", c.broken], ["lost", c.lost], ["deferred", c.deferred], ["waiting", c.waiting],
  ].filter(([, n]) => n > 0);

  function drawBar(r) {
    const c = r ? r.counts : { selected: 0 };
    const bar = byId("bar");
    bar.hidden = !c.selected;
    bar.replaceChildren(...(c.selected ? parts(c) : []).map(([kind, n]) => {
      const span = make("span", { class: "cell", "data-kind": kind });
      span.style.flexGrow = n;
      return span;
    }));
    const line = r && c.selected ? progress(c) : "";
    bar.setAttribute("aria-label", line || "no progress is known");
    byId("progress").textContent = line;
  }

  const progress = (c) => `${c.done} of ${c.selected} nodes done` +
    parts(c).filter(([kind]) => kind !== "done").map(([kind, n]) => `, ${n} ${kinds[kind]}`).join("");

  function drawFacts(r) {
    const facts = [];
    const fact = (name, value) => value && facts.push(make("dt", {}, name), make("dd", {}, value));
    if (r) {
      fact("Revision", r.revision && r.revision + (r.rollbackTo ? ` (rolled back to entry ${r.rollbackTo} of the history)` : ""));
      const s = r.stage;
      fact("Stage", s && `${s.number} of ${s.of}${s.name ? ", " + s.name : ""}${s.soaksUntil ? ", soaks until " + when(s.soaksUntil) : ""}`);
      const going = r.phase === "Running" || r.phase === "AtGate";
      fact("Expected end", doubt() ? "can't be said: see above" : r.expectedEnd ? when(r.expectedEnd) : going && "can't be said: it hangs on people, gates or windows, or too few nodes have come to their end");
      fact("Worst case", r.worstCase);
      fact("Domain", r.domain);
    }
    settle(byId("facts"), facts);
  }

  function drawWaits(r) {
    const rows = (r && r.waiting) || [];
    byId("waits").hidden = rows.length === 0;
    settle(byId("waits").querySelector("tbody"), rows.map((w) =>
      make("tr", { "data-key": w.reason }, make("td", {}, w.reason), make("td", {}, String(w.count)), make("td", {}, w.meaning))));
  }

  // speak has a screen reader say how far it is: at once where the phase changes, else once in a while.
  function speak(r) {
    if (!r) return;
    const text = `${chosen}: ${phrase(r)}. ${r.counts.selected ? progress(r.counts) : ""}`;
    const now = Date.now();
    if (text === spoken.text || (r.phase === spoken.phase && now - spoken.at < quiet)) return;
    spoken = { at: now, phase: r.phase, text };
    byId("live").textContent = text;
  }

  const clock = (t) => t.toLocaleTimeString();

  function when(stamp) {
    const t = new Date(stamp);
    const sameDay = t.toDateString() === new Date().toDateString();
    const hour = t.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
    return `${sameDay ? hour : t.toLocaleDateString() + " " + hour} (${span((t - Date.now()) / 1000)})`;
  }

  function span(seconds) {
    const s = Math.abs(seconds);
    const text = s < 90 ? `${Math.round(s)} s` : s < 5400 ? `${Math.round(s / 60)} min` : s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} d`;
    return seconds < 0 ? text + " ago" : "in " + text;
  }

  // commands shows what can be typed; a click on the button of one is heard by listen.
  function commands(list, all) {
    const within = list.contains(document.activeElement);
    settle(list, all.map((c) => make("li", { "data-key": c.line }, make("code", {}, c.line),
      make("button", { type: "button", "aria-label": "Copy " + c.line }, copied.line === c.line ? copied.said : "Copy"), c.effect ? make("span", { class: "hint" }, c.effect) : null)));
    if (within && !list.contains(document.activeElement)) list.closest("details, dialog").querySelector("summary, h2").focus();
  }

  // copy falls back on selecting the text: the clipboard is there on localhost and HTTPS alone.
  let copied = { line: "", said: "" }, forget = 0;
  async function copy(button) {
    const code = button.parentElement.querySelector("code"), line = code.textContent;
    try {
      await navigator.clipboard.writeText(line);
      copied = { line, said: "Copied" };
    } catch {
      getSelection().selectAllChildren(code);
      copied = { line, said: "Selected" };
    }
    say(button, copied.said);
    clearTimeout(forget);
    forget = setTimeout(() => {
      copied = { line: "", said: "" };
      for (const b of document.querySelectorAll(".commands button")) say(b, "Copy");
    }, 2000);
  }

  // --- the map

  function drawAll() {
    drawHead();
    order = Object.keys(model.nodes[chosen] || {}).sort(collator.compare);
    const before = cells;
    cells = new Map();
    findRevisions();
    for (const name of order) cells.set(name, draw(before.get(name) || blank(name), name));
    const stages = [...new Set(order.map((n) => cellOf(n).stage))];
    for (const s of stages) section(s);
    arrange([...sections.keys()]);
    line(byId("map"), ordered());
    mark(told);
    rove(cells.has(current) ? current : order[0] || "");
    drawLegend();
    filter();
  }

  const blank = (name) => make("div", { class: "cell", role: "option", tabindex: "-1", "data-name": name, "aria-selected": "false" });

  // drawNodes draws the nodes that have changed.
  function drawNodes(changed) {
    const known = revisions.join("\n");
    findRevisions();
    if (known !== revisions.join("\n") && byId("paint").value === "runs") {
      for (const [name, e] of cells) if (cellOf(name)) draw(e, name);
    }
    const dirty = new Set();
    let others = false;
    for (const name of Object.keys(changed)) {
      const e = cells.get(name), c = cellOf(name), was = e && Number(e.dataset.stage);
      if (e && (!c || was !== c.stage)) dirty.add(was);
      if (!c) {
        cells.delete(name);
        others = true;
        continue;
      }
      if (!e || was !== c.stage) dirty.add(c.stage);
      others ||= !e;
      const cell = draw(e || blank(name), name);
      cells.set(name, cell);
      flash(cell);
    }
    if (others) order = Object.keys(model.nodes[chosen] || {}).sort(collator.compare);
    if (dirty.size) {
      for (const s of dirty) section(s);
      arrange([...dirty]);
      line(byId("map"), ordered());
    }
    title();
    rove(cells.has(current) ? current : order[0] || "");
    drawLegend();
    filter();
    if (told && own(changed, told)) refresh();
  }

  // section is the part of the map that a stage has.
  function section(stage) {
    let s = sections.get(stage);
    if (!s) {
      const id = "stage-" + (stage < 0 ? "m" + -stage : stage);
      s = { title: make("h3", { id, role: "presentation" }), grid: make("div", { class: "cells", role: "presentation" }) };
      s.all = make("div", { class: "stage", role: "group", "aria-labelledby": id }, s.title, s.grid);
      sections.set(stage, s);
    }
    return s;
  }

  // arrange puts the cells of stages in order, and takes away stages without any.
  function arrange(stages) {
    const of = new Map(stages.map((s) => [s, []]));
    for (const name of order) {
      const e = cells.get(name), list = e && of.get(Number(e.dataset.stage));
      if (list) list.push(e);
    }
    for (const [stage, list] of of) {
      if (list.length === 0) sections.delete(stage);
      else line(sections.get(stage).grid, list);
    }
    title();
  }

  const ordered = () => [...sections].sort(([a], [b]) => rank(a) - rank(b)).map(([, s]) => s.all);
  const rank = (stage) => (stage === passed ? -1 : stage === noStage ? Infinity : stage);

  function stageName(stage) {
    if (stage === passed) return "Stages before";
    if (stage === noStage) return chosen === "" ? "In no rollout" : "Not selected any more";
    const name = ((model.rollouts[chosen] || {}).stages || [])[stage];
    return `Stage ${stage + 1}${name ? ": " + name : ""}`;
  }

  // title says of each stage how many of its nodes are what.
  function title() {
    const counts = new Map();
    for (const e of cells.values()) {
      const of = counts.get(Number(e.dataset.stage)) || {};
      of[e.dataset.kind] = (of[e.dataset.kind] || 0) + 1;
      counts.set(Number(e.dataset.stage), of);
    }
    for (const [stage, s] of sections) {
      const of = counts.get(stage) || {};
      const all = Object.keys(kinds).filter((k) => of[k]).map((k) => `${of[k]} ${kinds[k]}`).join(", ");
      s.title.textContent = `${stageName(stage)} - ${all}`;
    }
  }

  function findRevisions() {
    const count = new Map();
    for (const c of Object.values(model.nodes[chosen] || {})) count.set(c[4], (count.get(c[4]) || 0) + 1);
    const target = (model.rollouts[chosen] || {}).revision;
    const others = [...count.keys()].filter((r) => r && r !== target);
    // What has a hue keeps it, so that colours do not jump from revision to revision.
    others.sort((a, b) => place0(a) - place0(b) || count.get(b) - count.get(a) || collator.compare(a, b));
    revisions = (target ? [target] : []).concat(others);
  }

  const place0 = (revision) => { const i = revisions.indexOf(revision); return i < 0 ? revisions.length : i; };

  // draw has an element look like its node.
  function draw(e, name) {
    const c = cellOf(name);
    e.dataset.kind = c.kind;
    e.dataset.stage = c.stage;
    if (byId("paint").value === "runs") {
      const [hue, sign] = hueOf(c.runs);
      e.dataset.hue = hue;
      e.dataset.run = sign;
    } else {
      delete e.dataset.hue;
      delete e.dataset.run;
    }
    e.setAttribute("aria-label", label(name, c));
    e.removeAttribute("title");
    return e;
  }

  function hueOf(runs) {
    if (!runs) return [hues + 1, ""];
    const i = revisions.indexOf(runs);
    return i < hues ? [i, i === 0 ? "" : String.fromCharCode(97 + i)] : [hues, "+"];
  }

  const label = (name, c) => `${name}: ${kinds[c.kind]}${c.state ? ", " + c.state : ""}${c.reason ? ", " + c.reason : ""}, runs ${c.runs || "what is not known"}`;

  function flash(e) {
    e.classList.remove("fresh");
    requestAnimationFrame(() => e.classList.add("fresh"));
  }

  function drawLegend() {
    const count = Object.create(null);
    const byRuns = byId("paint").value === "runs";
    for (const c of Object.values(model.nodes[chosen] || {})) count[c[byRuns ? 4 : 0]] = (count[c[byRuns ? 4 : 0]] || 0) + 1;
    const entry = (attributes, text) => make("li", {}, make("span", { class: "cell", "aria-hidden": "true", ...attributes }), text);
    let entries;
    if (byRuns) {
      const shown = revisions.slice(0, hues), target = (model.rollouts[chosen] || {}).revision;
      entries = shown.map((r) => entry({ "data-hue": hueOf(r)[0], "data-run": hueOf(r)[1] }, `${r}${r === target ? ", which is wanted" : ""} (${count[r] || 0})`));
      const rest = revisions.slice(hues).reduce((n, r) => n + count[r], 0);
      if (rest) entries.push(entry({ "data-hue": hues, "data-run": "+" }, `others (${rest})`));
      if (count[""]) entries.push(entry({ "data-hue": hues + 1 }, `not known (${count[""]})`));
    } else {
      entries = Object.keys(kinds).filter((k) => count[k]).map((k) => entry({ "data-kind": k }, `${kinds[k]} (${count[k]})`));
    }
    settle(byId("legend"), entries);
  }

  // --- find

  function matches(name) {
    const c = cellOf(name), kind = byId("kind").value;
    if (kind && c.kind !== kind) return false;
    const text = `${name} ${kinds[c.kind]} ${c.state} ${c.reason} ${c.runs} ${stageName(c.stage)}`.toLowerCase();
    return byId("search").value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  }

  let filtering = 0;
  function filter() {
    cancelAnimationFrame(filtering);
    filtering = requestAnimationFrame(() => {
      const asked = byId("search").value.trim() || byId("kind").value;
      const found = asked ? order.filter(matches) : order;
      const hit = new Set(found);
      for (const [name, e] of cells) e.classList.toggle("faint", !hit.has(name));
      byId("found").textContent = asked ? `${found.length} of ${order.length}` : `${order.length}`;
      if (!byId("list").hidden) drawList(found);
    });
  }

  // drawList shows the nodes that were found; a click on the name of one is heard by listen.
  function drawList(found) {
    const body = byId("list").querySelector("tbody"), held = document.activeElement;
    const at = [...body.querySelectorAll("button")].indexOf(held);
    settle(body, found.slice(0, listed).map((name) => {
      const c = cellOf(name);
      return make("tr", { "data-key": name }, make("td", {}, make("button", { type: "button" }, name)), make("td", {}, stageName(c.stage)),
        make("td", {}, `${kinds[c.kind]}${c.state ? ", " + c.state : ""}`), make("td", { title: model.meanings[c.reason] }, c.reason || "-"), make("td", {}, c.runs || "not known"));
    }));
    if (at >= 0 && !held.isConnected) (body.querySelectorAll("button")[Math.min(at, found.length - 1)] || byId("search")).focus(); // its row is gone
    byId("more").textContent = found.length > listed ? `and ${found.length - listed} more: narrow the search` : "";
  }

  // --- keys

  // rove makes a node the one that Tab leads to.
  function rove(name) {
    const before = cells.get(current);
    if (before) before.tabIndex = -1;
    current = name;
    const e = cells.get(name);
    if (e) e.tabIndex = 0;
  }

  function go(e) {
    if (!e) return;
    rove(e.dataset.name);
    e.focus();
  }

  const shown = () => [...byId("map").querySelectorAll(".cell:not(.faint)")];

  // vertical is the cell above or below: a row of the same stage, or the nearest one of the stage next to it.
  function vertical(e, down) {
    const grid = e.parentElement, columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
    const all = [...grid.children], at = all.indexOf(e);
    for (let i = at + (down ? columns : -columns); i >= 0 && i < all.length; i += down ? columns : -columns) {
      if (!all[i].classList.contains("faint")) return all[i];
    }
    const next = down ? grid.parentElement.nextElementSibling : grid.parentElement.previousElementSibling;
    if (!next) return null;
    const others = [...next.querySelectorAll(".cell:not(.faint)")];
    return down ? others[Math.min(at % columns, others.length - 1)] : others[others.length - 1];
  }

  function onKey(event) {
    const e = event.target.closest(".cell");
    if (!e || event.altKey || event.metaKey) return;
    const all = shown(), at = all.indexOf(e);
    const steps = {
      ArrowRight: () => all[at + 1], ArrowLeft: () => all[at - 1], ArrowDown: () => vertical(e, true), ArrowUp: () => vertical(e, false),
      Home: () => all[0], End: () => all[all.length - 1],
    };
    if (steps[event.key]) {
      event.preventDefault();
      go(steps[event.key]());
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      tell(e.dataset.name);
    }
  }

  // --- the story of a node

  async function tell(name) {
    told = name;
    remember();
    mark(name);
    byId("story-title").textContent = name;
    byId("story-at").textContent = "";
    byId("story-body").replaceChildren(make("p", { class: "hint asking" }, "asking ..."));
    if (!byId("story").open) byId("story").showModal();
    byId("story-title").focus();
    await refresh();
  }

  function mark(name) {
    for (const e of byId("map").querySelectorAll('[aria-selected="true"]')) e.setAttribute("aria-selected", "false");
    const e = name && cells.get(name);
    if (e) e.setAttribute("aria-selected", "true");
  }

  let asking = null; // what is asked, and whether to ask again after it
  async function refresh() {
    if (asking && asking.name === told) {
      asking.again = true;
      return;
    }
    const mine = { name: told, again: true };
    asking = mine;
    const still = () => asking === mine && told === mine.name;
    while (mine.again && still()) {
      mine.again = false;
      const body = await ask(mine.name);
      if (still()) show(body);
    }
    if (asking === mine) asking = null;
  }

  // ask asks for a story. What does not answer in time is no better than what does not answer.
  async function ask(name) {
    try {
      const answer = await fetch("node?name=" + encodeURIComponent(name), { signal: AbortSignal.timeout(patience) });
      return answer.ok ? story(await answer.json()) : [make("p", { class: "alarm" }, await answer.text())];
    } catch {
      return null;
    }
  }

  // show shows a story, or that there was no answer, above what is shown already.
  function show(body) {
    const at = byId("story-body"), within = at.contains(document.activeElement);
    if (body) {
      say(byId("story-at"), "as of " + clock(doubt() || new Date()));
      settle(at, body);
    } else if (!at.querySelector(".unanswered")) {
      for (const e of at.querySelectorAll(".asking")) e.remove();
      at.prepend(make("p", { class: "alarm unanswered", "data-key": " " }, "The controller does not answer. What was shown may not be so any more."));
    }
    if (within && !at.contains(document.activeElement)) byId("story-title").focus();
  }

  function story(s) {
    const out = [];
    const table = (facts) => {
      const dl = make("dl", { class: "facts" });
      for (const [name, value] of facts) if (value) dl.append(make("dt", {}, name), make("dd", {}, value));
      return dl;
    };
    if (s.rollouts.length === 0) out.push(make("p", {}, "It is in no rollout of the domains that this controller looks after."));
    for (const r of s.rollouts) {
      out.push(make("h3", {}, `In rollout ${r.rollout}, which is ${r.phase || "not looked at yet"}`));
      if (r.error) out.push(make("p", { class: "alarm" }, r.error));
      else {
        out.push(table([
          ["Why", `${r.reason}: ${r.what}`], ["Detail", r.detail], ["State", r.state], ["Behind", some(r.behind)],
          ["Ahead", r.ahead ? `${r.ahead} before it` : ""], ["Since", r.since && when(r.since)], ["Until", r.until && when(r.until) + " at the latest, by itself"],
          ["What helps", r.change],
        ]));
      }
    }
    const list = make("ul", { class: "commands" });
    out.push(make("h3", {}, "Commands"), make("p", { class: "hint where" }, where()), list);
    commands(list, s.commands || []);
    out.push(make("h3", {}, "The node"), table(nodeFacts(s)));
    if ((s.story || []).length) {
      out.push(make("h3", {}, "What happened"), make("ol", { class: "events" }, ...[...s.story].reverse().map((e) =>
        make("li", {}, make("time", { datetime: e.time }, when(e.time)), e.what))));
    }
    return out;
  }

  function nodeFacts(s) {
    const is = s.is, sh = s.shadow;
    const facts = [["Node", `${is.ready ? "ready" : "not ready"}${is.cordoned ? (is.cordonedForAttempt ? `, cordoned for attempt ${is.cordonedForAttempt}` : ", cordoned, and not by a rollout") : ""}${is.zone ? ", zone " + is.zone : ""}`]];
    for (const c of is.conditions || []) facts.push(["Condition", `${c.type} is ${c.status}: ${c.message || c.reason || ""}`]);
    if (!sh) facts.push(["Agent", "it has no NodeShadow: no controller looks after it, or has not begun to"]);
    else {
      facts.push(["Runs", sh.runs ? bare(sh.runs) + (sh.wanted && sh.wanted !== sh.runs ? ", was last ordered " + bare(sh.wanted) : "") : "not known"]);
      facts.push(["Agent", !sh.known ? "it has not spoken yet: is it running on the node?" : sh.granted > sh.answered ? `attempt ${sh.granted} is granted, it has answered up to ${sh.answered}`
        : sh.answered === 0 ? "no attempt so far" : `attempt ${sh.answered}: ${[sh.phase, sh.reason].filter(Boolean).join(", ")}${sh.message ? ": " + sh.message : ""}`]);
    }
    if (s.slot) facts.push(["Slot", `attempt ${s.slot.attempt}, for rollout ${s.slot.rollout}${s.slot.state ? ", marked " + s.slot.state : ""}`]);
    facts.push(["To drain", drain(s.pods || [])]);
    for (const c of (s.config && s.config.conditions) || []) facts.push(["Config", `${c.type} is ${c.status}, ${c.reason}: ${c.message}`]);
    return facts;
  }

  const bare = (ref) => ref.split("@")[0];

  function some(names) {
    if (!names || names.length === 0) return "";
    return names.slice(0, 8).join(", ") + (names.length > 8 ? ` and ${names.length - 8} more` : "");
  }

  function drain(pods) {
    if (pods.length === 0) return "no pod is on it that would have to leave";
    const stuck = pods.filter((p) => !p.ending && ((p.budgets || []).length > 1 || (p.allowed !== undefined && p.allowed <= 0)));
    const free = pods.filter((p) => !stuck.includes(p));
    const named = (p) => p.name + (p.ending ? " (ending)" : (p.budgets || []).length ? ` (budget ${p.budgets.join(", ")})` : "");
    return [stuck.length ? "can't be evicted now: " + some(stuck.map(named)) : "", free.length ? "can leave: " + some(free.map(named)) : ""].filter(Boolean).join("; ");
  }

  // --- the wire

  let source = null, retry = 0, resting = 0, triedAt = 0;
  let beat = null; // the last one
  let seenAt = null, heardAt = null; // when the last event came; when the controller had heard from the API server last, by the clock of this browser
  let lost = true, whole = false; // whether nothing is heard; whether a model has come

  // doubt is the time of what is shown, if that may not be so any more.
  function doubt() {
    if (!whole) return null;
    if (beat && beat.deaf) return heardAt;
    return lost ? seenAt : null;
  }

  function where() {
    return `The page changes nothing: copy a command, and run it with a kubeconfig and a context of ${beat && beat.name ? beat.name : "this cluster"}. The command itself names no cluster.`;
  }

  // link says whether what is shown is so, above the page and in the story, which hides that.
  function link() {
    let state = "live", text = "live";
    if (lost) [state, text] = beat || retry ? ["lost", whole ? `not connected: this is how it was at ${clock(doubt())}` : "not connected"] : ["waiting", "connecting"];
    else if (beat && beat.deaf) [state, text] = ["deaf", `the controller has not heard from the API server since ${clock(heardAt)}${whole ? ": this is how it was then" : ""}`];
    else if (!whole) [state, text] = ["waiting", "waiting for the controller to see the cluster"];
    const was = byId("link").dataset.link;
    for (const id of ["link", "story-link"]) {
      byId(id).dataset.link = state;
      say(byId(id), text);
    }
    if (state !== was && own(model.rollouts, chosen)) drawFacts(model.rollouts[chosen]);
  }

  // heard notes that the controller is there.
  function heard() {
    seenAt = new Date();
    lost = false;
  }

  function onBeat(next) {
    if (beat && beat.build !== next.build) location.reload(); // the controller is another one: what it sends is not for this script
    beat = next;
    const at = next.heard ? Date.now() - (next.now - next.heard) : Date.now();
    if (!heardAt || Math.abs(at - heardAt) > 2000) heardAt = new Date(at); // what travels for longer is no other time
    if (next.name) {
      say(byId("cluster"), next.name);
      document.title = `${next.name} - belay fleet`;
    }
    for (const e of document.querySelectorAll(".where")) say(e, where());
  }

  // connect listens anew, to one stream at a time.
  function connect() {
    leave();
    triedAt = Date.now();
    const mine = source = new EventSource("events");
    const hear = (how) => (event) => {
      if (source !== mine) return;
      heard();
      how(JSON.parse(event.data));
      link();
    };
    mine.addEventListener("beat", hear(onBeat));
    mine.addEventListener("model", hear((next) => {
      whole = true;
      onModel(next);
      const { node } = place();
      if (node && !told) tell(node);
    }));
    mine.addEventListener("change", hear(onChange));
    mine.addEventListener("error", () => { if (source === mine) lose(mine.readyState === EventSource.CLOSED ? 10000 : 0); });
  }

  function leave() {
    clearTimeout(retry);
    if (source) source.close();
    source = null;
  }

  // lose notes that nothing is heard. After a time it is tried again, where the browser does not: it was refused, or does not know yet.
  function lose(after) {
    lost = true;
    if (after) {
      leave();
      retry = setTimeout(connect, after);
    }
    retry ||= -1;
    link();
  }

  // watch finds a connection that is there and brings nothing: three beats are missing.
  function watch() {
    if (source && Date.now() - Math.max(seenAt, triedAt) > 3 * (beat ? beat.every : 15000) + 1000) lose(1000);
    link();
  }

  // rest gives the connection back while nobody looks: a browser has six for all tabs of an address. Who is only away for a moment finds it still there.
  function rest() {
    clearTimeout(resting);
    if (!document.hidden) {
      if (!source) connect();
      return;
    }
    resting = setTimeout(() => {
      leave();
      lost = true;
      link();
    }, away);
  }

  function listen() {
    byId("rollout").addEventListener("change", (e) => { chosen = e.target.value; current = ""; remember(); drawAll(); });
    byId("search").addEventListener("input", filter);
    byId("kind").addEventListener("change", filter);
    byId("paint").addEventListener("change", () => { for (const [name, e] of cells) draw(e, name); drawLegend(); });
    byId("as").addEventListener("change", (e) => {
      const list = e.target.value === "list";
      for (const id of ["map", "legend", "keys"]) byId(id).hidden = list;
      byId("list").hidden = !list;
      filter();
    });
    for (const [kind, text] of Object.entries(kinds)) byId("kind").append(make("option", { value: kind }, text));
    const map = byId("map");
    map.addEventListener("keydown", onKey);
    map.addEventListener("click", (e) => { const c = e.target.closest(".cell"); if (c) { rove(c.dataset.name); tell(c.dataset.name); } });
    map.addEventListener("pointerover", (e) => { const c = e.target.closest(".cell"); if (c && !c.title) c.title = c.getAttribute("aria-label"); });
    map.addEventListener("focus", () => go(cells.get(current))); // by the link that skips to it
    byId("close").addEventListener("click", () => byId("story").close());
    byId("story").addEventListener("close", () => {
      if (byId("story").open) return; // this comes a moment after the story is gone: by then another may be told
      const e = cells.get(told);
      told = "";
      remember();
      mark("");
      if (!e || byId("map").hidden) return;
      rove(e.dataset.name);
      if (document.activeElement === document.body) e.focus(); // who has gone on by then stays there
    });
    document.addEventListener("keydown", (e) => {
      if (e.key === "/" && !e.target.closest("input, select, dialog")) {
        e.preventDefault();
        byId("search").focus();
      }
    });
    document.addEventListener("click", (e) => {
      const button = e.target.closest("button");
      if (!button) return;
      if (button.closest(".commands")) copy(button);
      else if (button.closest("#list")) tell(button.textContent);
    });
    document.addEventListener("visibilitychange", rest);
    window.addEventListener("hashchange", () => {
      const { rollout, node } = place();
      if (rollout !== undefined && rollout !== chosen && (own(model.rollouts, rollout) || own(model.nodes, rollout))) {
        chosen = rollout;
        byId("rollout").value = chosen;
        drawAll();
      }
      if (node && node !== told) tell(node);
    });
    setInterval(() => { const r = model.rollouts[chosen]; if (r) drawFacts(r); }, 30000); // times go by
    setInterval(() => { if (told && !document.hidden) refresh(); }, 10000); // pods leave, and budgets change, and the map does not tell
    setInterval(watch, 1000);
  }

  listen();
  connect();
})();
