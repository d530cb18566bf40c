// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
)

const (
	magic         = "belay-record"
	formatVersion = 1
	endMark       = "\nend of belay-record\n"
	headSumKey    = " header-sha256="
	// headerMax bounds the header line of every version, its newline included. Ours are below 700 bytes.
	headerMax = 1024
	// none stands for a writer or a machine that is not known.
	none = "-"
)

// digest is the SHA-256 of a payload.
type digest [sha256.Size]byte

func (d digest) String() string { return "sha256:" + hex.EncodeToString(d[:]) }

// header is what the first line of a record says.
type header struct {
	stream     string
	generation uint64
	length     int64
	writer     string
	machine    string
	payload    digest
}

// appendTo renders the header line, newline included. It has one rendering, which parseHeader insists on.
func (h *header) appendTo(b []byte) []byte {
	start := len(b)
	b = append(b, magic...)
	b = strconv.AppendInt(append(b, ' '), formatVersion, 10)
	b = append(append(b, " stream="...), h.stream...)
	b = appendGen(append(b, " generation="...), h.generation)
	b = strconv.AppendInt(append(b, " length="...), h.length, 10)
	b = append(append(b, " writer="...), h.writer...)
	b = append(append(b, " machine="...), h.machine...)
	b = hex.AppendEncode(append(b, " payload-sha256="...), h.payload[:])
	sum := sha256.Sum256(b[start:])
	b = hex.AppendEncode(append(b, headSumKey...), sum[:])
	return append(b, '\n')
}

// flaw is why a file is not a record of ours. The error is the detail and holds no payload.
type flaw struct {
	reason string
	err    error
}

func flawed(r string, format string, args ...any) *flaw {
	return &flaw{reason: r, err: fmt.Errorf(format, args...)}
}

// decode takes the bytes of a file apart. The payload shares data's memory.
func decode(data []byte) (header, []byte, *flaw) {
	if len(data) == 0 {
		return header{}, nil, &flaw{reason: reasonEmpty}
	}
	end := bytes.IndexByte(data[:min(len(data), headerMax)], '\n')
	if end < 0 {
		if len(data) < headerMax {
			return header{}, nil, flawed(reasonTruncated, "%d bytes and no whole header", len(data))
		}
		return header{}, nil, flawed(reasonHeader, "no end within %d bytes", headerMax)
	}
	h, f := decodeHeader(data[:end+1])
	if f != nil {
		return header{}, nil, f
	}
	payload, f := decodeBody(&h, data[end+1:])
	return h, payload, f
}

func decodeHeader(line []byte) (header, *flaw) {
	version, err := checkLine(line)
	if err != nil {
		return header{}, &flaw{reasonHeader, err}
	}
	if version > formatVersion {
		return header{}, flawed(reasonTooNew, "format %d, this version knows up to %d", version, formatVersion)
	}
	h, err := parseHeader(line)
	if err != nil {
		return header{}, &flaw{reasonHeader, err}
	}
	return h, nil
}

func decodeBody(h *header, body []byte) ([]byte, *flaw) {
	want := h.length + int64(len(endMark))
	switch {
	case int64(len(body)) < want:
		return nil, flawed(reasonTruncated, "%d bytes after the header, want %d", len(body), want)
	case int64(len(body)) > want:
		return nil, flawed(reasonTrailing, "%d bytes after the header, want %d", len(body), want)
	case string(body[h.length:]) != endMark:
		return nil, &flaw{reason: reasonEndMark}
	}
	payload := body[:h.length:h.length]
	if got := digest(sha256.Sum256(payload)); got != h.payload {
		return nil, flawed(reasonDigest, "payload is %s, want %s", got, h.payload)
	}
	return payload, nil
}

// checkLine verifies what every format version has: the magic, a version, and the digest of the line at its end. Only a
// line that verifies can be of a newer format; with a flipped bit it is damage.
func checkLine(line []byte) (version uint64, err error) {
	sumAt := len(line) - 1 - hex.EncodedLen(sha256.Size)
	if sumAt < 0 || !bytes.HasPrefix(line, []byte(magic+" ")) || !bytes.HasSuffix(line[:sumAt], []byte(headSumKey)) {
		return 0, errors.New("not a header line")
	}
	sum := sha256.Sum256(line[:sumAt-len(headSumKey)])
	if hex.EncodeToString(sum[:]) != string(line[sumAt:len(line)-1]) {
		return 0, errors.New("digest does not match")
	}
	text, _, _ := bytes.Cut(line[len(magic)+1:], []byte(" "))
	version, err = strconv.ParseUint(string(text), 10, 32)
	if err != nil || version == 0 {
		return 0, errors.New("no version")
	}
	return version, nil
}

// parseHeader reads a line of this version and refuses every line that appendTo would not write.
func parseHeader(line []byte) (header, error) {
	fields := bytes.Split(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	keys := []string{"stream=", "generation=", "length=", "writer=", "machine=", "payload-sha256="}
	if len(fields) != len(keys)+3 {
		return header{}, fmt.Errorf("%d fields, want %d", len(fields), len(keys)+3)
	}
	values := make([]string, len(keys))
	for i, key := range keys {
		value, ok := bytes.CutPrefix(fields[i+2], []byte(key))
		if !ok {
			return header{}, fmt.Errorf("field %d is not %q", i+2, key)
		}
		values[i] = string(value)
	}
	h, err := headerOf(values)
	if err != nil {
		return header{}, err
	}
	if !bytes.Equal(h.appendTo(nil), line) {
		return header{}, errors.New("not in the one form that is written")
	}
	return h, nil
}

func headerOf(values []string) (header, error) {
	h := header{stream: values[0], writer: values[3], machine: values[4]}
	if err := ValidateStream(h.stream); err != nil {
		return h, err
	}
	gen, ok := parseGen(values[1])
	if !ok {
		return h, errors.New("no generation")
	}
	h.generation = gen
	length, err := strconv.ParseInt(values[2], 10, 64)
	if err != nil || length < 0 || length > maxRecord {
		return h, errors.New("no length")
	}
	h.length = length
	if err := checkWriter(h.writer); err != nil {
		return h, err
	}
	if h.machine != none && !isHex(h.machine, machineDigits) {
		return h, errors.New("no machine")
	}
	if !isHex(values[5], 2*sha256.Size) {
		return h, errors.New("no payload digest")
	}
	_, err = hex.Decode(h.payload[:], []byte(values[5]))
	return h, err
}

func isHex(s string, digits int) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == digits
}

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

// write fills a file: with one call, or, where the payload is large, with the payload first, which the disk then works
// on while the digest for the header is made. Nothing is read of a file that is not whole: its name comes later.
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

// hintOf is a checksum that takes a fifteenth of the time of a digest. It only ever says that two payloads differ.
func hintOf(payload []byte) uint32 { return crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)) }
