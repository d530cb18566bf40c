// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/belayproject/belay/machine/provider"
)

// trim moves the console aside when it has more than limit bytes. The process goes on writing to the same file, which is empty then; what it
// writes in the same moment may be lost.
func (h *held) trim(limit int64) error {
	info, err := h.Lstat(consoleFile)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() <= limit {
		return nil
	}
	if err != nil {
		return err
	}
	data, err := tail(h.Root, consoleFile, maxTail)
	if err != nil {
		return err
	}
	if err := put(h.Root, consoleBefore, data, 0o600); err != nil {
		return err
	}
	f, err := h.OpenFile(consoleFile, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// maxTail bounds what is kept of a console that was moved aside, and what a call returns.
const maxTail = 1 << 20

// tail returns the end of a file, nothing of one that is not there.
func tail(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(max(0, info.Size()-limit), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// tidy trims a console that has grown too long, unless somebody holds the machine.
func (c *core) tidy(token string) {
	info, err := c.machines.Lstat(filepath.Join(token, consoleFile))
	if err != nil || info.Size() <= c.limit {
		return
	}
	h, err := c.tryHold(token, false)
	if h == nil || err != nil {
		return // the next call may
	}
	defer h.release()
	if h.there {
		_ = h.trim(c.limit) // as above
	}
}

// Console returns the end of what the machine has printed.
func (c *core) Console(ctx context.Context, ref provider.Ref, limit int) ([]byte, error) {
	if limit < 0 {
		return nil, provider.Errorf(provider.InvalidConfig, "console of machine %q: a limit of %d bytes: want 0 or more", ref.Token, limit)
	}
	limit = min(limit, maxTail)
	token, err := c.begin(ctx, ref)
	if err != nil {
		return nil, wrap("console", token, err)
	}
	root, err := c.open(token)
	if err != nil {
		return nil, c.missing("console", token, err)
	}
	defer func() { _ = root.Close() }() // only read
	now, err := tail(root, consoleFile, int64(limit))
	if err != nil {
		return nil, wrap("console", token, err)
	}
	before, err := tail(root, consoleBefore, int64(limit-len(now)))
	if err != nil {
		return nil, wrap("console", token, err)
	}
	return append(before, now...), nil
}
