// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/demo/internal/nodeprocess"
	"github.com/belayproject/belay/examples/internal/screen"
)

// Layout is that of the live table.
func Layout() screen.Layout {
	return screen.Layout{
		Columns: []screen.Column{
			{Heading: "NODE", Width: 12}, {Heading: "RUNS", Width: 11}, {Heading: "STATE", Width: 21},
			{Heading: "CONFIGOK", Word: "ConfigOK"}, {Heading: "RESTARTS", Word: "restarts"},
			{Heading: "HEALTH", Word: "health", Width: 8},
		},
		Why: "WHY", Lines: 2,
	}
}

// Row shows a node during a step. known are the configs pushed so far, the init config included.
func (s Step) Row(known []Config, m Mark, seen Seen) screen.Row {
	r := seen.Report
	why := screen.Cell{Text: shortUIDs(r.Reason), Tone: screen.Faint} // the message, the effect, is in the other cells
	if reason, ok := r.Rejected[s.Config.Ref.UID]; ok {
		why.Text = shortUIDs(reason) // also while ConfigOK speaks of the API server
	}
	if seen.ReportErr != nil {
		why = screen.Cell{Text: "no report: " + seen.ReportErr.Error(), Tone: screen.Pending}
	}
	row := screen.Row{
		Cells: []screen.Cell{
			{Text: seen.Node, Tone: screen.Strong}, runs(known, seen), s.state(m, seen), configOK(r.Status),
			{Text: fmt.Sprint(seen.restarts(m))}, healthCell(seen),
		},
		Why: why,
	}
	row.Key = fmt.Sprintln(row.Cells[1].Text, row.Cells[2].Tone == screen.Pending, r.Active.UID, r.Status, why.Text, seen.restarts(m))
	return row
}

// healthCell says whether healthz answers, and if not, by the journal, why. It is down if the process says that it
// serves.
func healthCell(seen Seen) screen.Cell {
	if seen.Healthz == nil {
		return screen.Cell{Text: "ok", Tone: screen.Good}
	}
	switch seen.last().Event {
	case nodeprocess.Started:
		return screen.Cell{Text: "starting", Tone: screen.Pending}
	case nodeprocess.Stopped:
		return screen.Cell{Text: "stopped", Tone: screen.Pending}
	case nodeprocess.Failed:
		return screen.Cell{Text: "crashed", Tone: screen.Bad}
	case nodeprocess.Serving:
		return screen.Cell{Text: "down", Tone: screen.Bad}
	default:
		return screen.Cell{Text: "-", Tone: screen.Faint}
	}
}

// runs says what the process runs, by its own journal.
func runs(known []Config, seen Seen) screen.Cell {
	last := seen.last()
	name := "-"
	for _, c := range known {
		if c.Sum() == last.Config {
			name = strings.TrimSpace(c.Name + " " + c.Ref.Short())
		}
	}
	if last.Event == nodeprocess.Serving {
		return screen.Cell{Text: name}
	}
	return screen.Cell{Text: name, Tone: screen.Bad}
}

// state says in a few words what the node makes of its config.
func (s Step) state(m Mark, seen Seen) screen.Cell {
	r := seen.Report
	_, rejected := r.Rejected[s.Config.Ref.UID]
	switch {
	case seen.ReportErr != nil:
		return screen.Cell{Text: "not known", Tone: screen.Pending}
	case r.Trial != nil:
		text := fmt.Sprintf("on trial %s of %s", seconds(r.Trial.Healthy), seconds(r.Trial.Needed))
		if r.Trial.Crashes > 0 {
			text = fmt.Sprintf("on trial, %d/%d crashes", r.Trial.Crashes, r.Trial.Allowed)
		}
		return screen.Cell{Text: text, Tone: screen.Pending}
	case rejected && seen.crashes(m.Entries, s.Config.Sum()) > 0:
		return screen.Cell{Text: "rolled back from " + s.Config.Name, Tone: screen.Bad}
	case rejected:
		return screen.Cell{Text: "refused " + s.Config.Name, Tone: screen.Bad}
	case r.Status == "False":
		return screen.Cell{Text: "last known good", Tone: screen.Pending}
	case r.Active.UID == "" && r.Status != "":
		return screen.Cell{Text: "local config", Tone: screen.Good}
	case r.Active.UID != "" && r.Active.UID == r.Good.UID:
		return screen.Cell{Text: "promoted", Tone: screen.Good}
	default:
		return screen.Cell{}
	}
}

func configOK(status string) screen.Cell {
	switch status {
	case "True":
		return screen.Cell{Text: status, Tone: screen.Good}
	case "False":
		return screen.Cell{Text: status, Tone: screen.Bad}
	case "":
		return screen.Cell{Text: "-", Tone: screen.Faint}
	default:
		return screen.Cell{Text: status, Tone: screen.Pending}
	}
}

// seconds shows a duration in seconds.
func seconds(d time.Duration) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + "s"
}

// shortUIDs leaves of each UID only its beginning: whole ones don't fit.
func shortUIDs(text string) string {
	uid := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	return uid.ReplaceAllStringFunc(text, shortUID)
}

// shortDigests leaves of each digest only its beginning.
func shortDigests(text string) string {
	digest := regexp.MustCompile(`(sha256:[0-9a-f]{8})[0-9a-f]{56}`)
	return digest.ReplaceAllString(text, "$1…")
}

// shortUID is how a UID is shown.
func shortUID(uid string) string { return uid[:min(len(uid), 8)] + "…" }
