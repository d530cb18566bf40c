// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/belayproject/belay/drain"
)

// columns aligns rows, whose cells are separated by tabs, and returns a line for each.
func columns(rows []string) []string {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, r)
	}
	_ = t.Flush() // a Buffer doesn't fail
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// row joins cells; an empty one is a dash.
func row(cells ...string) string {
	for i, c := range cells {
		if cells[i] = oneLine(c); cells[i] == "" {
			cells[i] = "-"
		}
	}
	return strings.Join(cells, "\t")
}

// oneLine takes out what would break a line or a column.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// number is n, or a dash for none.
func number(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// count is "1 pod" or "2 pods".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// since is the time from then to now; empty where then is not known.
func since(then, now time.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(then).Round(time.Second))
}

// next announces a step with its time; empty where nothing comes by itself.
func next(step drain.Step, at, now time.Time) string {
	switch {
	case step == "":
		return ""
	case at.IsZero():
		return string(step)
	case at.After(now):
		return fmt.Sprintf("%s at %s (in %s)", step, at.In(now.Location()).Format(time.TimeOnly), duration.HumanDuration(at.Sub(now)))
	default:
		return string(step) + " now"
	}
}

// pods lists the names of pods, the first few of them.
func pods(list []drain.PodRef, most int) string {
	var names []string
	for i, p := range list {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(list)-most))
			break
		}
		names = append(names, p.String())
	}
	return strings.Join(names, ", ")
}

// text ends each line.
func text(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}
