// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprocess

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// The events of a run, in the order in which they happen. A run that is killed has none after the last that it reached.
const (
	Started Event = "started" // the process is there and has read its config
	Serving Event = "serving" // it does its work with that config
	Failed  Event = "failed"  // it gives up; Detail says why
	Stopped Event = "stopped" // it was told to stop
)

// An Event is what happened to a run.
type Event string

// An Entry is one line of a journal: the process's own word on what it ran, so that the demo need not take the agent's.
type Entry struct {
	At    time.Time `json:"at"`
	PID   int       `json:"pid"`
	Event Event     `json:"event"`
	// Config is the SHA-256 of the config file in hex; empty if it could not be read.
	Config string `json:"config,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// appendEntry adds one line to the journal at path in one write. An empty path means that no journal is kept.
func appendEntry(path string, e Entry) error {
	if path == "" {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// ReadJournal returns the entries of the journal at path, oldest first. A journal that doesn't exist yet is empty. A last
// line without its end is still being written and left out.
func ReadJournal(path string) ([]Entry, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	raw = raw[:bytes.LastIndexByte(raw, '\n')+1]
	var entries []Entry
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for n := 1; lines.Scan(); n++ {
		var e Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("reading the journal %q, line %d: %w", path, n, err)
		}
		entries = append(entries, e)
	}
	return entries, lines.Err()
}
