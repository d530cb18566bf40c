// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

// TestSettledTellsWhenTheAgentMayBeReplaced: R-CS-69. Not while a config is on trial, not after a rollback, not while
// nobody knows what is wanted; but once what is wanted runs and has proven itself.
func TestSettledTellsWhenTheAgentMayBeReplaced(t *testing.T) {
	m := lkgtest.NewMachine(t, *tolerant(0))
	settled := func() bool {
		s := m.Tracker().State()
		s.Desired = lkg.Outcome{Kind: lkg.DesiredCorrect}
		return lkg.Settled(s)
	}
	m.Adopt(named("a"))
	m.Start()
	if settled() {
		t.Error("settled while a is on trial")
	}
	m.Healthy(time.Second)
	m.Promote()
	if !settled() {
		t.Error("not settled after a was promoted")
	}
	s := m.Tracker().State()
	s.Desired = lkg.Outcome{Kind: lkg.DesiredUnreachable}
	if lkg.Settled(s) {
		t.Error("settled while nobody knows what is wanted")
	}
	m.Adopt(named("broken"))
	m.Start()
	m.Crash()
	m.Start()
	if settled() {
		t.Error("settled after a rollback")
	}
}
