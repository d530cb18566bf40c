// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// A Log is the audit log of one API server. Its methods may be called at the same time.
type Log struct {
	path string

	mu     sync.Mutex
	offset int64
	rest   []byte          // the last line, while it is not whole
	seen   map[string]bool // audit IDs
}

// A Request is one that the API server has received. A watch, which has two events in the log, is one request.
type Request struct {
	Received time.Time
	// User is who has asked, Agent with what user agent.
	User, Agent string
	// Verb, Resource and Subresource are what was asked for. Paths that are no resource have no Resource.
	Verb, Resource, Subresource string
	// Code is that of the answer.
	Code int
}

// New returns the log in a file. Nothing is read yet.
func New(path string) *Log { return &Log{path: path, seen: map[string]bool{}} }

// Read calls each for every request that has come to the log since the last Read. It is an error if the log has become shorter.
func (l *Log) Read(each func(Request)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(each); err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	return nil
}

func (l *Log) read(each func(Request)) error {
	f, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < l.offset {
		return fmt.Errorf("it has %d bytes, after %d that were read: it has been rotated", info.Size(), l.offset)
	}
	if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
		return err
	}
	more, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	l.offset += int64(len(more))
	l.rest = append(l.rest, more...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return nil
		}
		l.rest = rest
		if err := l.take(line, each); err != nil {
			return err
		}
	}
}

func (l *Log) take(line []byte, each func(Request)) error {
	var event struct {
		AuditID string `json:"auditID"`
		Verb    string `json:"verb"`
		User    struct {
			Username string `json:"username"`
		} `json:"user"`
		UserAgent string `json:"userAgent"`
		ObjectRef struct {
			Resource    string `json:"resource"`
			Subresource string `json:"subresource"`
		} `json:"objectRef"`
		ResponseStatus struct {
			Code int `json:"code"`
		} `json:"responseStatus"`
		Received time.Time `json:"requestReceivedTimestamp"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("decoding %q: %w", line, err)
	}
	if l.seen[event.AuditID] {
		return nil
	}
	l.seen[event.AuditID] = true
	each(Request{
		Received: event.Received, User: event.User.Username, Agent: event.UserAgent, Verb: event.Verb,
		Resource: event.ObjectRef.Resource, Subresource: event.ObjectRef.Subresource, Code: event.ResponseStatus.Code,
	})
	return nil
}
