// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
)

// An auditLog counts the requests in the API server's audit log, by user. A watch has two events, when it begins and when it ends.
type auditLog struct {
	path string

	mu     sync.Mutex
	offset int64
	rest   []byte          // the last line, while it is not whole
	seen   map[string]bool // audit IDs
	users  map[string]Served
}

// Served is what the API server received from a user.
type Served struct{ Requests, Evictions int }

// of returns how many requests of the user the log holds now.
func (a *auditLog) of(user string) (Served, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.read(); err != nil {
		return Served{}, fmt.Errorf("reading the audit log: %w", err)
	}
	return a.users[user], nil
}

func (a *auditLog) read() error {
	f, err := os.Open(a.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < a.offset {
		return fmt.Errorf("it has %d bytes, after %d that were read: it has been rotated", info.Size(), a.offset)
	}
	if _, err := f.Seek(a.offset, io.SeekStart); err != nil {
		return err
	}
	more, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	a.offset += int64(len(more))
	a.rest = append(a.rest, more...)
	for {
		line, rest, whole := bytes.Cut(a.rest, []byte("\n"))
		if !whole {
			return nil
		}
		a.rest = rest
		if err := a.count(line); err != nil {
			return err
		}
	}
}

func (a *auditLog) count(line []byte) error {
	var event struct {
		AuditID string `json:"auditID"`
		User    struct {
			Username string `json:"username"`
		} `json:"user"`
		ObjectRef struct {
			Subresource string `json:"subresource"`
		} `json:"objectRef"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("decoding %q: %w", line, err)
	}
	if a.seen[event.AuditID] {
		return nil
	}
	a.seen[event.AuditID] = true
	served := a.users[event.User.Username]
	served.Requests++
	if event.ObjectRef.Subresource == "eviction" {
		served.Evictions++
	}
	a.users[event.User.Username] = served
	return nil
}
