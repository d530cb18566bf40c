// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"hash/crc32"
	"io"
)

// overlap is the payload size, in bytes, from which the digest is made while the disk takes the payload in.
const overlap = 256 << 10

// draft is a record that is being written, and the memory for it, which is used again.
type draft struct {
	header  header
	line    []byte // the header as it is written
	payload []byte // the caller's
	end     []byte
	signed  bool // the digest is in the header
	bufs    [3][]byte
}

// begin readies a record. The header has its length from the start: a digest has one, too.
func (d *draft) begin(h header, payload []byte) {
	h.length = int64(len(payload))
	d.header, d.payload, d.signed = h, payload, false
	if d.end == nil {
		d.end = []byte(endMark)
	}
	d.line = d.header.appendTo(d.line[:0])
	if len(payload) < overlap {
		d.sign()
	}
}

// forget lets go of the caller's payload.
func (d *draft) forget() { d.payload, d.bufs = nil, [3][]byte{} }

func (d *draft) size() int64 { return int64(len(d.line) + len(d.payload) + len(d.end)) }

func (d *draft) sign() {
	d.header.payload = digestOf(d.payload)
	d.line = d.header.appendTo(d.line[:0])
	d.signed = true
}

// write fills a file: with one call, or, where the payload is large, with the payload first, which the disk then works on
// while the digest for the header is made. Nothing is read of a file that is not whole: its name comes later.
func (d *draft) write(sys fsys, fd int) error {
	if d.signed {
		d.bufs = [3][]byte{d.line, d.payload, d.end}
		return writeAll(sys, fd, d.bufs[:], 0)
	}
	d.bufs = [3][]byte{d.payload, d.end}
	if err := writeAll(sys, fd, d.bufs[:2], int64(len(d.line))); err != nil {
		return err
	}
	if err := sys.hurry(fd); err != nil {
		return err
	}
	d.sign()
	d.bufs = [3][]byte{d.line}
	return writeAll(sys, fd, d.bufs[:1], 0)
}

// writeAll hands the buffers over, and goes on where the system stopped short. It changes bufs.
func writeAll(sys fsys, fd int, bufs [][]byte, off int64) error {
	for len(bufs) > 0 {
		n, err := sys.writeAt(fd, bufs, off)
		if err == nil && n == 0 {
			err = io.ErrNoProgress
		}
		if err != nil {
			return err
		}
		off += int64(n)
		for len(bufs) > 0 && n >= len(bufs[0]) {
			n -= len(bufs[0])
			bufs = bufs[1:]
		}
		if len(bufs) > 0 {
			bufs[0] = bufs[0][n:]
		}
	}
	return nil
}

// hintOf is a checksum that takes a fifteenth of the time of a digest. It only ever says that two payloads differ.
func hintOf(payload []byte) uint32 { return crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)) }
