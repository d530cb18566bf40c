// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// errLocked means that another process has the lock.
var errLocked = errors.New("locked by another process")

// lockPoll is how often a lock is tried that another process has: a wait in the kernel could not be ended by a context.
const lockPoll = 250 * time.Millisecond

// A lockOwner is what stands in a lock file, for people and for the error of whoever comes second. Nothing is decided by it.
type lockOwner struct {
	PID         int         `json:"pid"`
	Fingerprint Fingerprint `json:"fingerprint"`
}

// lock takes the lock of Spec.LockFile, notes which file that is, and returns how to give it back.
func (m *Member) lock(ctx context.Context) (unlock func(), err error) {
	path := m.spec.LockFile
	if path == "" {
		return func() {}, nil
	}
	for {
		f, id, err := lockFile(path)
		if err == nil {
			m.locked = id
			sign(f, lockOwner{PID: os.Getpid(), Fingerprint: m.spec.Fingerprint})
			return func() { _ = f.Close() }, nil // the lock ends with the file; a failed Close would not change that
		}
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("locking %q for Lease %q: %w", path, m.Key(), err)
		}
		owner := ownerIn(path)
		dup := &DuplicateError{Key: m.Key(), Ours: m.spec.Fingerprint, Theirs: owner.Fingerprint, LockFile: path}
		if owner.PID != 0 {
			dup.Holder = fmt.Sprintf("process %d", owner.PID)
		}
		if m.spec.OnDuplicate == FailOnDuplicate {
			return nil, dup
		}
		m.foundDuplicate(ctx, dup)
		if err := m.wait(ctx, lockPoll); err != nil {
			return nil, err
		}
	}
}

// lockFile opens and locks the file at path, and says which one it is. A file that was removed or replaced in between excludes nobody: then it
// starts again.
func lockFile(path string) (*os.File, string, error) {
	for {
		f, err := openLock(path)
		if err != nil {
			return nil, "", err
		}
		if err := flock(f); err != nil {
			return nil, "", errors.Join(err, f.Close())
		}
		id, err := idOf(f)
		same := false
		if err == nil {
			same, err = isAt(f, path)
		}
		if same {
			return f, id, nil
		}
		if closeErr := f.Close(); err != nil || closeErr != nil {
			return nil, "", errors.Join(err, closeErr)
		}
	}
}

// isAt reports whether path still is the file f.
func isAt(f *os.File, path string) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), err
}

// sign writes who has the lock. It is no matter if that fails.
func sign(f *os.File, owner lockOwner) {
	b, err := json.Marshal(owner)
	if err == nil && f.Truncate(0) == nil {
		_, _ = f.WriteAt(append(b, '\n'), 0)
	}
}

// ownerIn reads who has the lock, the zero value if that cannot be read.
func ownerIn(path string) lockOwner {
	f, err := os.Open(path)
	if err != nil {
		return lockOwner{}
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<16))
	var owner lockOwner
	if err != nil || json.Unmarshal(b, &owner) != nil {
		return lockOwner{}
	}
	return owner
}
