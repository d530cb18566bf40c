// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/natefinch/atomic"
	"golang.org/x/sys/unix"
)

// peers are the libraries by which node agents write such files today, linked as they are.
func peers() []subject {
	return []subject{
		fileSubject("renameio", func(path string, data []byte) error { return renameio.WriteFile(path, data, 0o600) }),
		fileSubject("natefinch/atomic", func(path string, data []byte) error { return atomic.WriteFile(path, bytes.NewReader(data)) }),
	}
}

// fileSubject keeps each stream in one file, which write replaces.
func fileSubject(name string, write func(path string, data []byte) error) subject {
	return subject{
		name:    name,
		prepare: func(dir string) error { return prepareFiles(dir) },
		open:    func(dir string) (keeper, error) { return &fileKeeper{dir: dir, write: write}, nil },
	}
}

// prepareFiles makes the directories, durably: only the files are on trial.
func prepareFiles(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "d"), 0o700); err != nil {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

type fileKeeper struct {
	dir   string
	write func(path string, data []byte) error
}

func (k *fileKeeper) put(ctx context.Context, stream string, v value) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return k.write(filepath.Join(k.dir, stream), payload(stream, v))
}

func (k *fileKeeper) look(stream string) (value, uint64, error) {
	text, err := os.ReadFile(filepath.Join(k.dir, stream))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	v, err := valueOf(stream, text)
	return v, 0, err
}

func (k *fileKeeper) close() error { return nil }

// inPlace writes over the file that is there: durable, and not atomic.
func inPlace() subject {
	return fileSubject("write-in-place", func(path string, data []byte) error {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.Write(data); err != nil {
			return err
		}
		return f.Sync()
	})
}

// stubborn answers a failed fsync with another one of the same file, as many programs do.
func stubborn() subject {
	return fileSubject("repeated-fsync", func(path string, data []byte) error {
		return writeStubbornly(path, data)
	})
}

func writeStubbornly(path string, data []byte) error {
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := syncTwice(f); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return syncTwice(dir)
}

func syncTwice(f *os.File) error {
	if f.Sync() == nil {
		return nil
	}
	return f.Sync()
}
