// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/demo/internal/nodeprocess"
)

// A Mark is what was known of a node when a step began.
type Mark struct {
	// At is the time of the push.
	At time.Time
	// Entries is the length of the journal then.
	Entries int
}

// Running returns what is missing until the node's process runs the config that the step must end on, by the journal and healthz
// alone.
func (s Step) Running(m Mark, seen Seen) []string {
	var missing []string
	need := func(ok bool, format string, args ...any) {
		if !ok {
			missing = append(missing, fmt.Sprintf(format, args...))
		}
	}
	last, starts := seen.last(), seen.starts(m.Entries)
	need(last.Event == nodeprocess.Serving && last.Config == s.Good.Sum(),
		"its process runs %s (journal: %s %.12s)", s.Good.Name, last.Event, last.Config)
	need(seen.Healthz == nil, "healthz answers (%v)", seen.Healthz)
	switch s.Kind {
	case Alone, Settle, Adopt:
		need(starts >= 1, "its process was started with %s", s.Config.Name)
	case Refuse:
		need(starts == 0, "its process was left alone (%d restarts)", starts)
	case RollBack:
		need(seen.crashes(m.Entries, s.Config.Sum()) >= 1, "its process crashed with %s", s.Config.Name)
	}
	return missing
}

// Decided returns what is missing until the node has decided what the step must lead to. Whether anybody has been told is not asked.
func (s Step) Decided(seen Seen) []string {
	if seen.ReportErr != nil {
		return []string{fmt.Sprintf("it reports (%v)", seen.ReportErr)}
	}
	var missing []string
	need := func(ok bool, format string, args ...any) {
		if !ok {
			missing = append(missing, fmt.Sprintf(format, args...))
		}
	}
	r := seen.Report
	need(r.Active.UID == s.Good.Ref.UID, "it reports %s as active (active is %q)", s.Good.Name, r.Active.Name)
	need(r.Good.UID == s.Good.Ref.UID, "it reports %s as last known good (that is %q)", s.Good.Name, r.Good.Name)
	need(r.Trial == nil, "the trial is over")
	if s.bad() {
		_, listed := r.Rejected[s.Config.Ref.UID]
		need(listed, "it lists %s as rejected", s.Config.Name)
	}
	return missing
}

// Told returns what is missing until ConfigOK says what the step must lead to.
func (s Step) Told(seen Seen) []string {
	if seen.ReportErr != nil {
		return nil // [Step.Decided] says so
	}
	r, want := seen.Report, "True"
	var missing []string
	if s.Kind == Alone {
		want = "Unknown"
	}
	if s.bad() {
		want = "False"
		if !strings.Contains(r.Reason, s.Config.Ref.UID) {
			missing = append(missing, fmt.Sprintf("the reason names the UID of %s ", s.Config.Name))
		}
	}
	if r.Status != want {
		missing = append(missing, fmt.Sprintf("ConfigOK is %s (it is %q)", want, r.Status))
	}
	if !strings.HasPrefix(r.Reason, s.Reason) {
		missing = append(missing, fmt.Sprintf("the reason begins with %q (it is %q)", s.Reason, r.Reason))
	}
	return missing
}

// bad reports whether the step's config must be rejected.
func (s Step) bad() bool { return s.Kind == Refuse || s.Kind == RollBack }

// Settled reports whether the node runs what it must and has decided so, by its own word: all that can be had without the API server.
func (s Step) Settled(m Mark, seen Seen) bool {
	return len(s.Running(m, seen))+len(s.Decided(seen)) == 0
}

// Missing is everything that has not been seen yet of what the step must lead to; none means that it happened.
func (s Step) Missing(m Mark, seen Seen) []string {
	return slices.Concat(s.Running(m, seen), s.Decided(seen), s.Told(seen))
}

// BackWithin says whether the node's process went back to the good config between two moments, by its journal: the proof that it
// needed nobody for it.
func (s Step) BackWithin(m Mark, seen Seen, from, to time.Time) error {
	for _, e := range seen.since(m.Entries) {
		if e.Event != nodeprocess.Serving || e.Config != s.Good.Sum() {
			continue
		}
		if e.At.After(from) && e.At.Before(to) {
			return nil
		}
		return fmt.Errorf("%s ran %s at %s, and the API server was down from %s to %s", seen.Node, s.Good.Name,
			e.At.Format(time.TimeOnly), from.Format(time.TimeOnly), to.Format(time.TimeOnly))
	}
	return fmt.Errorf("%s did not go back to %s", seen.Node, s.Good.Name)
}

// Crashed reports whether the node's process has given the pushed config up at least once.
func (s Step) Crashed(m Mark, seen Seen) bool { return seen.crashes(m.Entries, s.Config.Sum()) > 0 }
