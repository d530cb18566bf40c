// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/belayproject/belay/lkg"
)

// shownRejected is how many rejected configs a table shows.
const shownRejected = 10

// digestLength is how many characters of a digest a table shows.
const digestLength = 12

// page collects the lines of a table, so that only one write can fail.
type page struct {
	bytes.Buffer
	now time.Time
}

func writeTable(w io.Writer, d Document) error {
	p := &page{now: d.Time}
	p.head(d)
	p.lastLines(d)
	p.configs(d)
	p.trial(d.Trial)
	p.rejected(d.Rejected)
	p.next(d.Next)
	p.list("Trouble:", d.Trouble)
	_, err := w.Write(p.Bytes())
	return err
}

// columns prints rows whose cells are separated by tabs.
func (p *page) columns(rows ...string) {
	t := tabwriter.NewWriter(&p.Buffer, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, r)
	}
	_ = t.Flush() // a Buffer doesn't fail
}

// row joins cells; an empty one is a dash.
func row(cells ...string) string {
	for i, c := range cells {
		cells[i] = word(oneLine(c), "-")
	}
	return strings.Join(cells, "\t")
}

// list prints lines under a title, and nothing where there are none.
func (p *page) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(p, "\n%s\n", title)
	for _, l := range lines {
		fmt.Fprintf(p, "  %s\n", oneLine(l))
	}
}

func (p *page) head(d Document) {
	var rows []string
	if d.Node != "" {
		rows = append(rows, row("Node:", d.Node))
	}
	ok := "ConfigOK:"
	if d.InUse == nil {
		ok = "ConfigOK at the next start:"
	}
	rows = append(rows, row("Agent:", p.agent(d.Agent)), row("Agent version:", d.Version))
	rows = append(rows, p.childRows(d)...)
	if c := d.ConfigOK; c != nil {
		rows = append(rows, row(ok, c.Status), row("  effect:", c.Message), row("  cause:", c.Reason))
		if c.Detail != "" {
			rows = append(rows, row("  detail:", c.Detail))
		}
	}
	rows = append(rows, row("Wanted config:", p.wanted(d.Wanted)))
	if d.Wanted.Pending != "" {
		rows = append(rows, row("  pending:", d.Wanted.Pending))
	}
	p.columns(rows...)
}

// childRows says whether the child runs, and how the last one ended.
func (p *page) childRows(d Document) (rows []string) {
	last := d.Next.After
	switch a := d.Agent; {
	case a == nil && last != nil:
		return []string{row("Last start:", p.when(last.At)+", "+last.Cause+": "+last.Detail)}
	case a == nil:
		return nil
	case a.Child != 0:
		rows = append(rows, row("Child:", fmt.Sprintf("process %d", a.Child)))
	default:
		rows = append(rows, row("Child:", "NOT RUNNING"))
	}
	if last != nil && last.Unexplained > 1 {
		rows = append(rows, row("  restarts:",
			fmt.Sprintf("%d within 10m that nothing explains, the last %s", last.Unexplained, p.when(last.At))))
	}
	if e := d.Agent.LastEnd; e != nil {
		rows = append(rows, row("  last end:", e.How+", "+p.when(e.At)))
		if e.Cause != "" && !strings.HasPrefix(e.How, e.Cause) &&
			(d.ConfigOK == nil || !strings.Contains(d.ConfigOK.Reason, e.Cause)) {
			rows = append(rows, row("  its cause:", e.Cause))
		}
	}
	return rows
}

// lastLines are those of the last child that ended on its own.
func (p *page) lastLines(d Document) {
	const title = "Last lines of the child that ended:"
	switch {
	case d.Agent != nil && d.Agent.LastEnd != nil:
		p.list(title, d.Agent.LastEnd.Last)
	case d.Next.After != nil:
		p.list(title, d.Next.After.Last)
	}
}

func (p *page) agent(a *Agent) string {
	if a == nil {
		return "not running; this is what is on record"
	}
	return fmt.Sprintf("process %d, since %s, source %s", a.PID, p.when(a.Started), a.Source)
}

func (p *page) wanted(w Wanted) string {
	text := w.Outcome
	if !w.Since.IsZero() {
		text += ", since " + p.when(w.Since)
	}
	if w.Cause != "" {
		text += ": " + w.Cause
	}
	return text
}

func (p *page) configs(d Document) {
	rows := []string{row("", "CONFIG", "UID", "KEY", "DIGEST", "SINCE")[1:]}
	add := func(role string, c Config, since time.Time) {
		rows = append(rows, row(role, c.name(), c.UID, c.Key, c.shortDigest(), p.when(since)))
	}
	if u := d.InUse; u != nil {
		add("in use", u.Config, u.Since)
	}
	add("assigned", d.Assigned.Config, d.Assigned.Since)
	add("last known good", d.LastKnownGood.Config, d.LastKnownGood.Promoted)
	if d.Previous.Local == "" {
		add("good before that", d.Previous, time.Time{})
	}
	fmt.Fprintln(p)
	p.columns(rows...)
	if u := d.InUse; u != nil {
		fmt.Fprintf(p, "\nIn use because %s.\n", oneLine(u.Why))
	}
}

func (p *page) trial(t *Trial) {
	if t == nil {
		return
	}
	fmt.Fprintf(p, "\nTrial: since %s; %s of %s healthy; unexplained starts: %d, tolerated: %d.\n",
		p.when(t.Since), t.Healthy, t.Needed, t.Counted, t.Allowed)
	for _, l := range t.NotCounted {
		fmt.Fprintf(p, "  not counted: %s\n", oneLine(l))
	}
	for _, l := range t.Failing {
		fmt.Fprintf(p, "  failing: %s\n", oneLine(l))
	}
}

func (p *page) rejected(list []Rejected) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(p, "\nRejected (not used until forgotten with forget-bad UID):")
	rows := []string{row("  UID", "CONFIG", "KEY", "DIGEST", "SINCE", "REASON")}
	for _, r := range list[:min(len(list), shownRejected)] {
		rows = append(rows, row("  "+r.UID, r.name(), r.Key, r.shortDigest(), p.when(r.Since), r.Reason))
		if r.Evidence != "" {
			rows = append(rows, "    detail: "+oneLine(r.Evidence))
		}
		if n := len(r.Last); n > 0 {
			rows = append(rows, "    its last line: "+oneLine(r.Last[n-1]))
		}
	}
	p.columns(rows...)
	if len(list) > shownRejected {
		fmt.Fprintf(p, "  %d more, by class: %s; -o json shows all\n", len(list)-shownRejected, byClass(list[shownRejected:]))
	}
}

// byClass counts rejected configs.
func byClass(list []Rejected) string {
	counts := map[string]int{}
	for _, r := range list {
		counts[r.Class]++
	}
	var out []string
	for _, class := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s %d", class, counts[class]))
	}
	return strings.Join(out, ", ")
}

func (p *page) next(n Next) {
	switch {
	case n.Unknown != "":
		fmt.Fprintf(p, "\nWhat the next start would do is not known: %s.\n", n.Unknown)
		return
	case n.Refuse != "":
		fmt.Fprintf(p, "\nThe next start would refuse: %s.\n", oneLine(n.Refuse))
		return
	}
	trial := ""
	if n.OnTrial {
		trial = ", on trial"
	}
	fmt.Fprintf(p, "\nThe next start would use %s%s.\n", n.as(n.Role), trial)
	for _, s := range n.PassedOver {
		fmt.Fprintf(p, "  not %s: %s\n", s.as(s.Role), oneLine(s.Why))
	}
	if n.Rejects != "" {
		fmt.Fprintln(p, "  and it would list the assigned config as rejected, for that reason")
	}
}

// as names a config with its place in the choice.
func (c Config) as(role string) string {
	place := map[string]string{
		string(lkg.RoleCurrent):       "the assigned config",
		string(lkg.RoleLastKnownGood): "the last known good config",
		string(lkg.RolePrevious):      "the good config before the last one",
		string(lkg.RoleLocal):         "the local config",
	}[role]
	if role == string(lkg.RoleLocal) {
		return place + " (" + c.Local + ")"
	}
	return place + ", " + c.name()
}

// name is for people: namespace and name, or what the local config is.
func (c Config) name() string {
	if c.Local != "" {
		return "local (" + c.Local + ")"
	}
	return oneLine(c.Namespace + "/" + c.Name)
}

func (c Config) shortDigest() string {
	_, hex, _ := strings.Cut(c.Digest, ":")
	return hex[:min(len(hex), digestLength)]
}

// when is a time and how long ago it was; empty for the zero time.
func (p *page) when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339) + " (" + ago(p.now.Sub(t)) + ")"
}

// ago is coarse on purpose. A clock that was set back gives no negative age.
func ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return "now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd ago", int(d.Hours())/24)
	}
}
