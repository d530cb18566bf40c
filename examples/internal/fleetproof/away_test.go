// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testenv"
)

// An asking is about the moment at which an agent that may go on asks what its Revision stands for.
type asking struct {
	first, unanswered chan struct{} // closed when it asks, and when it has had no answer
	killed            chan struct{} // closed when it may send
	once, failed      sync.Once
}

func isAsking(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/revisions/")
}

// hold keeps the first request from being sent, and those that follow, until the server is dead.
func (a *asking) hold(r *http.Request) {
	if isAsking(r) {
		a.once.Do(func() { close(a.first) })
		<-a.killed
	}
}

func (a *asking) note(r *http.Request) {
	if isAsking(r) {
		a.failed.Do(func() { close(a.unanswered) })
	}
}

// R-CS-27, R-RO-01: an API server that ends just when a node that may go on asks for its config fails no node: the node asks again, and its attempt comes
// to the end that it would have come to.
func TestServerEndsAsAConfigIsTakenUp(t *testing.T) {
	t.Parallel()
	a := &asking{first: make(chan struct{}), unanswered: make(chan struct{}), killed: make(chan struct{})}
	s := stageWith(t, &calls{ahead: a.hold, failed: a.note})
	r := s.publish(false)
	s.turn(r)
	within(t, a.first, "an agent asks for its Revision")
	server := s.env.Server(testenv.APIServer)
	must(t, server.Kill())
	close(a.killed)
	within(t, a.unanswered, "it has no answer")
	must(t, server.Start(t.Context()))
	s.brings(r, func() {})
	s.sound()
}

// within waits until a channel is closed.
func within(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s: not within %s", what, patience)
	}
}
