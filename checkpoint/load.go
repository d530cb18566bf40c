// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"fmt"
	"slices"
)

// loader reads record files and judges them. It changes nothing.
type loader struct {
	sys     fsys
	uid     uint32
	machine string
	limit   int64 // no larger file is read
}

// load reads one generation of a stream into buf, which may be nil and is returned grown. The payload is a part of it.
func (l *loader) load(dir int, n name, gen uint64, buf []byte) (header, []byte, []byte, *flaw) {
	file := recordFile(n.base, gen)
	h, payload, grown, f := l.judge(dir, file, n, gen, buf)
	if f != nil && f.reason == reasonUnreadable {
		h, payload, grown, f = l.judge(dir, file, n, gen, buf) // once more: a bus may have hiccups
	}
	if f == nil || f.reason == reasonMissing {
		return h, payload, grown, f
	}
	// A file that was dropped, or emptied after its stream was deleted, while it was read says nothing.
	if _, err := l.sys.statAt(dir, file); isGone(err) {
		f = &flaw{reasonMissing, err}
	}
	return h, payload, grown, f
}

func (l *loader) judge(dir int, file string, n name, gen uint64, buf []byte) (header, []byte, []byte, *flaw) {
	data, f := l.read(dir, file, buf)
	if f != nil {
		return header{}, nil, buf, f
	}
	h, payload, f := decode(data)
	if f == nil {
		f = l.place(&h, n, gen)
	}
	return h, payload, data, f
}

// place compares what a record says about itself with where it lies.
func (l *loader) place(h *header, n name, gen uint64) *flaw {
	switch {
	case h.stream != n.String():
		return flawed(reasonForeign, "written for stream %q", h.stream)
	case h.generation != gen:
		return flawed(reasonForeign, "written as generation %d", h.generation)
	case h.machine != l.machine && h.machine != none && l.machine != none:
		return flawed(reasonForeign, "written by machine %s, this is %s", h.machine, l.machine)
	}
	return nil
}

// read returns the whole content of a file that is ours.
func (l *loader) read(dir int, file string, buf []byte) ([]byte, *flaw) {
	fd, err := l.sys.openAt(dir, file, openRead)
	if err != nil {
		return nil, flawOf(err)
	}
	data, f := l.readFD(fd, buf)
	if err := l.sys.close(fd); err != nil && f == nil {
		f = flawOf(err)
	}
	return data, f
}

func (l *loader) readFD(fd int, buf []byte) ([]byte, *flaw) {
	info, err := l.sys.stat(fd)
	if err != nil {
		return nil, flawOf(err)
	}
	if err := info.checkFile(l.uid); err != nil {
		return nil, &flaw{reasonUntrusted, err}
	}
	if info.size > l.limit {
		return nil, flawed(reasonOversize, "%d bytes, the store may have %d", info.size, l.limit)
	}
	// One byte more than there should be, to see the end.
	data := slices.Grow(buf[:0], int(info.size)+1)
	for {
		n, err := l.sys.readAt(fd, data[len(data):cap(data)], int64(len(data)))
		if err != nil {
			return nil, flawOf(err)
		}
		if n == 0 {
			return data, nil
		}
		if data = data[:len(data)+n]; len(data) == cap(data) {
			return nil, flawed(reasonTrailing, "more than the %d bytes that it had at first", info.size)
		}
	}
}

// flawOf says what a failed system call makes of a file.
func flawOf(err error) *flaw {
	switch {
	case isGone(err):
		return &flaw{reasonMissing, err}
	case isTrap(err):
		return &flaw{reasonUntrusted, err}
	}
	return &flaw{reasonUnreadable, err}
}

// openFolder opens a directory in the store's own and checks that it is ours.
func openFolder(sys fsys, root int, dir string, uid uint32) (int, fileInfo, error) {
	fd, err := sys.openAt(root, dir, openDir)
	if isTrap(err) {
		err = fmt.Errorf("directory %q: %w: %w", dir, ErrUntrusted, err)
	}
	if err != nil {
		return -1, fileInfo{}, err
	}
	info, err := sys.stat(fd)
	if err == nil && info.uid != uid {
		err = fmt.Errorf("directory %q: %w: has another owner", dir, ErrUntrusted)
	}
	if err != nil {
		sys.close(fd)
		return -1, fileInfo{}, err
	}
	return fd, info, nil
}
