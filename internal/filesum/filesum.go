// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package filesum

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// settled is how long ago a file must have changed for its digest to be kept: one that is being written may change
// within a tick of the clock of its file system.
const settled = time.Minute

// A Cache remembers the digest of one file. The zero Cache remembers none. Its method may be called from several
// goroutines.
type Cache struct {
	mu   sync.Mutex
	path string
	info fs.FileInfo
	sum  string
}

// DigestOf returns the SHA-256 of a file as 64 hexadecimal digits. What it remembers holds while the path leads to the
// same file, of the same size, and the times of the last change of content and attributes are the same. The error
// is that of the file system.
func (c *Cache) DigestOf(path string) (sum string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if c.path == path && c.info != nil && isSame(c.info, info) {
		return c.sum, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	after, statErr := f.Stat()
	if err := errors.Join(err, statErr, f.Close()); err != nil {
		return "", err
	}
	c.path, c.info, c.sum = path, nil, hex.EncodeToString(h.Sum(nil))
	if isSame(info, after) && time.Since(lastChange(info)) > settled {
		c.info = info
	}
	return c.sum, nil
}

func isSame(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) &&
		lastChange(a).Equal(lastChange(b))
}
