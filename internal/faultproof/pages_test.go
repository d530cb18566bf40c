// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

const pageSize = 4096

// pages is what a disk holds, by the number of the page; what is not there is zero. A page is never written to, but replaced.
type pages map[int64][]byte

func readPages(file string) (pages, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := pages{}
	for at := int64(0); ; {
		at, err = f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return p, nil
		}
		if err != nil {
			return nil, err
		}
		at = at / pageSize * pageSize
		page := make([]byte, pageSize)
		if _, err := f.ReadAt(page, at); err != nil && err != io.EOF {
			return nil, err
		}
		p.put(at/pageSize, page)
		at += pageSize
	}
}

var zeros = make([]byte, pageSize)

func (p pages) put(n int64, page []byte) {
	if bytes.Equal(page, zeros) {
		delete(p, n)
		return
	}
	p[n] = page
}

// apply writes data at an offset, but for the pages that lose names.
func (p pages) apply(off int64, data []byte, lose func() bool) {
	for len(data) > 0 {
		n, at := off/pageSize, off%pageSize
		length := min(int64(len(data)), pageSize-at)
		if !lose() {
			page := make([]byte, pageSize)
			copy(page, p[n])
			copy(page[at:], data[:length])
			p.put(n, page)
		}
		data, off = data[length:], off+length
	}
}

// write makes a file of the pages, with holes where there are none.
func (p pages) write(file string, size int64) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(p)) {
		if _, err := f.WriteAt(p[n], n*pageSize); err != nil {
			return err
		}
	}
	return nil
}
