// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/demo/internal/nodeprocess"
)

// A Ref is a config as the cluster knows it. A config from the node's own disk has no UID.
type Ref struct{ Name, UID, Digest string }

// Short is the beginning of the digest.
func (r Ref) Short() string {
	digest := strings.TrimPrefix(r.Digest, "sha256:")
	return digest[:min(len(digest), 8)]
}

// String names the config the way that the table and the reasons do.
func (r Ref) String() string { return fmt.Sprintf("ConfigMap %s, UID %s", r.Name, shortUID(r.UID)) }

// A Report is what a node says about its config.
type Report struct {
	// Active is the config in use, Good the one to go back to.
	Active, Good Ref
	// Rejected are the configs that the node won't use, by UID, with the reason.
	Rejected map[string]string
	// Trial is set while Active is on trial.
	Trial *Trial
	// Status, Reason and Message are those of the ConfigOK condition.
	Status, Reason, Message string
	// Detail is the evidence behind the reason. Only the agent itself gives it.
	Detail string
}

// A Trial is how far a config has come on its way to being known good.
type Trial struct {
	Healthy, Needed  time.Duration
	Crashes, Allowed int
}

// Seen is all that was seen of one node at one moment.
type Seen struct {
	Node string
	// Report is the node's own; ReportErr says why there is none.
	Report    Report
	ReportErr error
	// Runs is the journal of the node's process, from its first start.
	Runs []nodeprocess.Entry
	// Healthz is nil if the node's process answered ok.
	Healthz error
}

// last is the newest entry of the journal.
func (s Seen) last() nodeprocess.Entry {
	if len(s.Runs) == 0 {
		return nodeprocess.Entry{}
	}
	return s.Runs[len(s.Runs)-1]
}

// starts counts the starts of the process after the first n entries of its journal.
func (s Seen) starts(n int) int {
	count := 0
	for _, e := range s.since(n) {
		if e.Event == nodeprocess.Started {
			count++
		}
	}
	return count
}

// restarts counts the starts of the process since m; its very first is none.
func (s Seen) restarts(m Mark) int {
	n := s.starts(m.Entries)
	if m.Entries == 0 {
		n--
	}
	return max(n, 0)
}

// crashes counts the runs with a config that the process gave up after the first n entries of its journal.
func (s Seen) crashes(n int, sum string) int {
	count := 0
	for _, e := range s.since(n) {
		if e.Event == nodeprocess.Failed && e.Config == sum {
			count++
		}
	}
	return count
}

func (s Seen) since(n int) []nodeprocess.Entry { return s.Runs[min(n, len(s.Runs)):] }
