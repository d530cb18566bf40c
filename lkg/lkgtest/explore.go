// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest

import (
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
)

// Explore runs a story on fresh machines: once undisturbed, then once for every write that it makes and every [Stop].
// After a kill the machine comes back, with a clock step, a crash, a reboot; then the whole story is told again to what
// is left. With a full disk the story goes on, the disk recovers, and the machine comes back as well. Every rule is
// checked after every call.
//
// It returns how many machines it ran.
func Explore(t testing.TB, o Options, story func(*Machine)) int {
	t.Helper()
	m := NewMachine(t, o)
	story(m)
	writes, runs := m.Store.Writes(), 1
	for _, how := range []Stop{StopBefore, StopAfter, StopFull} {
		for n := 1; n <= writes && !t.Failed(); n++ {
			exploreOne(t, o, story, n, how)
			runs++
		}
	}
	return runs
}

func exploreOne(t testing.TB, o Options, story func(*Machine), n int, how Stop) {
	t.Helper()
	m := NewMachine(t, o)
	m.Store.StopAt(n, how)
	killed := m.UntilKilled(func() { story(m) })
	comeBack(m)
	m.Store.StopAt(0, StopBefore)
	comeBack(m)
	story(m)
	if t.Failed() {
		t.Logf("write %d, stop %d, killed: %v: run this one alone to see why", n, how, killed)
	}
}

// UntilKilled runs f until the store kills the process (see [Store.StopAt]), and reports whether it did. The store then
// accepts writes again.
func (m *Machine) UntilKilled(f func()) (killed bool) {
	m.t.Helper()
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if r != errKilled { //nolint:errorlint // a panic value, compared by identity
			panic(r)
		}
		killed = true
		m.Store.StopAt(0, StopBefore)
		m.ledger.durable(m, "a kill")
		if m.ledger.announced() { // killed right after a restart was announced
			m.ledger.excused()
		}
		m.Kill()
	}()
	f()
	return false
}

// comeBack starts the machine in several ways.
func comeBack(m *Machine) {
	m.t.Helper()
	m.Kill()
	m.Step(-48 * time.Hour)
	m.Start()
	m.Crash()
	m.Start()
	m.Step(96 * time.Hour)
	m.Reboot()
	m.Start()
	m.Restart(lkg.CausePlanned)
	m.Start()
}
