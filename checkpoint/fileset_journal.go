// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// journalStream is the only stream in the directory of a FileSet. Its newest record says what the
// last Apply was about, and how far it came.
const journalStream = "files"

const journalVersion = 1

// phase is how far an Apply came. Only files of one that is applying are ever restored.
type phase string

const (
	phaseApplying phase = "applying" // files may be old or new
	phaseApplied  phase = "applied"  // all files are new
	phaseUndone   phase = "undone"   // all files are old
)

// journal is the record.
type journal struct {
	Version int    `json:"version"`
	Phase   phase  `json:"phase"`
	Tag     string `json:"tag"` // is in the names of the temporary files
	// Doubtful says that an fsync failed while files were restored: what a directory shows may not
	// be what is on the disk.
	Doubtful bool     `json:"doubtful,omitempty"`
	Made     []string `json:"made,omitempty"` // directories that were missing, upper ones first
	Files    []change `json:"files"`
}

// change is what an Apply does to one file.
type change struct {
	Dir  string    `json:"dir"` // without links
	Name string    `json:"name"`
	Old  fileState `json:"old"`
	New  fileState `json:"new"`
}

// fileState says all that recovery compares of a file.
type fileState struct {
	Present bool   `json:"present"`
	Digest  string `json:"digest,omitempty"`
	Mode    uint32 `json:"mode,omitempty"`
	UID     uint32 `json:"uid,omitempty"`
	GID     uint32 `json:"gid,omitempty"`
}

// readJournal returns nil where there is nothing to recover from: no record, or damage. The Store
// has told OnDamage of that.
func readJournal(ctx context.Context, store *Store) (*journal, error) {
	rec, err := store.Read(ctx, journalStream)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrCorrupt):
		return nil, nil
	case err != nil:
		return nil, err
	case len(rec.Damage) > 0: // the record of another Apply than the last one, or of an earlier phase
		return nil, nil
	}
	var j journal
	if err := json.Unmarshal(rec.Payload, &j); err != nil {
		return nil, fmt.Errorf("the journal: %w", err)
	}
	if j.Version != journalVersion {
		return nil, fmt.Errorf("the journal: %w: version %d", ErrTooNew, j.Version)
	}
	return &j, nil
}

// write stores the journal. It is not cut off half-way by a context: what is on the disk and what
// is in it have to agree.
func (j *journal) write(ctx context.Context, store *Store) error {
	payload, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return store.Put(context.WithoutCancel(ctx), journalStream, payload)
}
