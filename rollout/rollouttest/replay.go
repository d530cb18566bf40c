// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// worlds are those in which it shows that a rule is missing.
func worlds() map[Without]Options {
	small := Options{Nodes: 3, Cap: 1, Attempts: 3}
	lossy := Options{Nodes: 2, Cap: 1, Attempts: 3, Losses: 1}
	aborted := Options{Nodes: 2, Cap: 1, Attempts: 3, Abort: true}
	all := map[Without]Options{
		LedgerCAS: small, CommitCAS: small, AttemptMatch: small, Facts: small, EpochMark: lossy, Finalizer: lossy, Revocation: aborted,
	}
	for rule, o := range all {
		o.Without = rule
		all[rule] = o
	}
	return all
}

// replay takes the shortest run that breaks a promise without a rule, and makes it on the store, with all rules: it has to be refused on its way.
func replay(ctx context.Context, t *testing.T, open func() rollout.LedgerStore, rule Without) {
	o := worlds()[rule]
	found, err := Explore(ctx, o)
	if err != nil || found.Violation == "" {
		t.Fatalf("no run breaks a promise without the %s: %v", rule, err)
	}
	r := &rerun{ctx: ctx, t: t, open: open, cap: o.Cap, nodes: make([]rerunNode, o.Nodes)}
	for i := range r.nodes {
		sh := protocol.NewShadow(nodeName(i), nodeName(i), protocol.Ledger{})
		sh.Report.Known = true
		r.nodes[i] = rerunNode{shadows: []protocol.Shadow{sh}, there: true, disk: sh.Report}
	}
	if _, err := open().Store(ctx, protocol.Ledger{}, ""); err != nil {
		t.Fatal(err)
	}
	r.load()
	for i, move := range found.Trace {
		if !r.make(move) {
			t.Logf("move %d of %d is refused: %s", i+1, len(found.Trace), move)
			return
		}
		r.check(move)
	}
	t.Errorf("a run that is possible only without the %s was made: %s", rule, strings.Join(found.Trace, "; "))
}

// A rerun is a run under way, with everything that anybody may have read.
type rerun struct {
	ctx   context.Context
	t     *testing.T
	open  func() rollout.LedgerStore
	cap   int
	reads []readLedger // the last one is the live ledger
	nodes []rerunNode
	acked bool
}

type readLedger struct {
	store   rollout.LedgerStore
	ledger  protocol.Ledger
	version string
}

type rerunNode struct {
	shadows []protocol.Shadow // the last one is the live one, if it is there
	there   bool
	disk    protocol.Report
	down    bool
}

func (n *rerunNode) live() protocol.Shadow { return n.shadows[len(n.shadows)-1] }

// load reads the ledger as another process does.
func (r *rerun) load() protocol.Ledger {
	s := r.open()
	l, version, err := s.Load(r.ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	r.reads = append(r.reads, readLedger{s, l, version})
	return l
}

// swap stores what change makes of any ledger that was read, the newest first, and reports whether the store has taken one.
func (r *rerun) swap(change func(protocol.Ledger) (protocol.Ledger, error)) bool {
	for i := len(r.reads) - 1; i >= 0; i-- {
		read := r.reads[i]
		next, err := change(read.ledger)
		if err != nil {
			continue
		}
		_, err = read.store.Store(r.ctx, next, read.version)
		if err == nil {
			r.load()
			return true
		}
		if !errors.Is(err, rollout.ErrConflict) {
			r.t.Fatal(err)
		}
	}
	return false
}

// make makes a move, in any of the ways that the rules allow, and reports whether there was one.
func (r *rerun) make(move string) bool {
	words := strings.Fields(move)
	if len(words) == 1 {
		return r.close(words[0])
	}
	var i int
	var k protocol.Attempt
	_, _ = fmt.Sscanf(words[1], "n%d", &i)
	_, _ = fmt.Sscanf(words[len(words)-1], "a%d", &k)
	n := &r.nodes[i]
	switch words[0] {
	case "admit", "release":
		return r.slot(words[0], n)
	case "grant", "revoke":
		return n.there && r.order(words[0], n, k)
	case "commit", "end", "recall":
		return n.there && r.report(words[0], n)
	case "delete":
		n.there = n.there && !n.live().Removable()
		return !n.there
	case "create":
		n.shadows, n.there = append(n.shadows, protocol.NewShadow(nodeName(i), nodeName(i), r.load())), true
		return true
	}
	r.t.Fatalf("a run has the move %q, which is not known", move)
	return false
}

// close aborts, resumes or acknowledges.
func (r *rerun) close(move string) bool {
	switch move {
	case "abort":
		return r.swap(func(l protocol.Ledger) (protocol.Ledger, error) {
			return l.Close(protocol.Closure{Request: abortRequest}), nil
		})
	case "resume":
		r.acked = false
		return r.swap(func(l protocol.Ledger) (protocol.Ledger, error) { return l.Open("", abortRequest), nil })
	}
	r.acked, _ = protocol.Acknowledged(r.load(), "", func(uid string) (protocol.Shadow, bool) {
		for i := range r.nodes {
			if nodeName(i) == uid && r.nodes[i].there {
				return r.nodes[i].live(), true
			}
		}
		return protocol.Shadow{}, false
	})
	return r.acked
}

// slot admits a node or frees its slot, by any version of its shadow.
func (r *rerun) slot(move string, n *rerunNode) bool {
	for _, sh := range n.shadows {
		if r.swap(func(l protocol.Ledger) (protocol.Ledger, error) {
			if move == "release" {
				return l.Release(sh)
			}
			return l.Admit(protocol.Admission{Shadow: sh, Rollout: rolloutUID}, []protocol.Cap{{Max: r.cap}}, nil)
		}) {
			return true
		}
	}
	return false
}

// order grants or revokes an attempt, by any ledger that was read, on the live shadow.
func (r *rerun) order(move string, n *rerunNode, k protocol.Attempt) bool {
	sh := n.live()
	for _, read := range r.reads {
		slot := read.ledger.Slot(sh.UID)
		if slot == nil || slot.Attempt != k {
			continue
		}
		o, err := sh.Revoke(k)
		if move == "grant" {
			o, err = sh.Give(*slot, "v1", false)
		}
		if err == nil {
			sh.Orders = o
			n.shadows = append(n.shadows, sh)
			return true
		}
	}
	return false
}

// report has the agent commit, come to its end, or say again what is on its disk, on the live shadow.
func (r *rerun) report(move string, n *rerunNode) bool {
	sh := n.live()
	var report protocol.Report
	var err error
	changed := true
	switch move {
	case "commit":
		report, err = sh.Answer(protocol.EventCommit)
	case "recall":
		report, changed = protocol.Recall(sh, n.disk)
	default:
		report, err = through(sh)
	}
	if err != nil || !changed {
		return false
	}
	if move == "commit" && r.acked {
		r.t.Errorf("%s commits attempt %d after the abort was acknowledged", sh.Node, report.Attempt)
	}
	sh.Report, n.disk = report, report
	n.down = !report.Phase.AtRest()
	n.shadows = append(n.shadows, sh)
	return true
}

// check looks at the ledger as it is stored: every node that is disrupted has a slot there, and they are not too many.
func (r *rerun) check(move string) {
	l, down := r.load(), 0
	for i := range r.nodes {
		if !r.nodes[i].down {
			continue
		}
		if down++; l.Slot(nodeName(i)) == nil {
			r.t.Errorf("after %q %s is disrupted and has no slot", move, nodeName(i))
		}
	}
	if down > r.cap {
		r.t.Errorf("after %q %d nodes are disrupted, the cap is %d", move, down, r.cap)
	}
}
