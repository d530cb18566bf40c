// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"sync"

	"github.com/belayproject/belay/examples/internal/bench/audit"
)

// A tally counts the requests in the API server's audit log, by user.
type tally struct {
	log *audit.Log

	mu    sync.Mutex
	users map[string]Served
}

// Served is what the API server received from a user.
type Served struct{ Requests, Evictions int }

func newTally(path string) *tally { return &tally{log: audit.New(path), users: map[string]Served{}} }

// of returns how many requests of the user the log holds now.
func (t *tally) of(user string) (Served, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.log.Read(func(r audit.Request) {
		served := t.users[r.User]
		served.Requests++
		if r.Subresource == "eviction" {
			served.Evictions++
		}
		t.users[r.User] = served
	})
	return t.users[user], err
}
