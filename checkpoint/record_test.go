// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// encode renders a whole file.
func encode(h header, payload []byte) []byte {
	h.length, h.payload = int64(len(payload)), digestOf(payload)
	return append(append(h.appendTo(nil), payload...), endMark...)
}

func sample() header {
	return header{
		stream: "checkpoints/0f2a4c7e-3d1b-4a5e-9c8d-7b6a5f4e3d2c", generation: 0x1a, writer: "v1.2.3",
		machine: "00112233445566778899aabbccddeeff",
	}
}

// The file is version 1 of the format, as it lies on disks. A change that this test sees is a new version.
func TestFormatVersion1IsReadAndWrittenAsEver(t *testing.T) {
	const golden = "testdata/record-v1.golden"
	payload := []byte("{\n  \"kubelet\": \"\\u0000\"\n}\n\x00\xff")
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := encode(sample(), payload); !bytes.Equal(got, want) {
		t.Fatalf("the written record differs from %s: got\n%q\nwant\n%q", golden, got, want)
	}
	h, got, f := decode(want)
	if f != nil {
		t.Fatalf("decode: got %s: %v", f.reason, f.err)
	}
	if !bytes.Equal(got, payload) || h.stream != sample().stream || h.generation != 0x1a || h.writer != "v1.2.3" {
		t.Fatalf("decode: got %+v and %q, want %+v and %q", h, got, sample(), payload)
	}
}

// D9, E2: of a record of 4 KiB, each of the 32,768 bits flipped; of smaller ones as well; each cut, growth, and block
// of zeros. Nothing is accepted, and nothing is taken for a newer format, which would block its stream. L-CS-05.
func TestFaultD9BitRot(t *testing.T) {
	const page = 4096
	empty := len(encode(sample(), nil))
	flips, others := 0, 0
	for _, size := range []int{0, 1, 100, page - empty} {
		whole := encode(sample(), bytes.Repeat([]byte{0xa5}, size))
		for i := range len(whole) * 8 {
			data := bytes.Clone(whole)
			data[i/8] ^= 1 << (i % 8)
			if _, _, f := decode(data); f == nil || f.reason == reasonTooNew {
				t.Fatalf("payload of %d bytes: bit %d flipped: got %v, want it refused as damaged", size, i, f)
			}
			flips++
		}
		others += cuts(t, whole) + growths(t, whole) + zeroed(t, whole)
	}
	t.Logf("fault D9 flips=%d lost=0 bar=%d others=%d accepted=0 ok", flips, page*8, others)
}

func cuts(t *testing.T, whole []byte) int {
	t.Helper()
	for n := range len(whole) {
		if _, _, f := decode(whole[:n]); f == nil || n > 0 && f.reason != reasonTruncated || n == 0 && f.reason != reasonEmpty {
			t.Fatalf("cut at %d of %d: got %v, want truncated", n, len(whole), f)
		}
	}
	return len(whole)
}

func growths(t *testing.T, whole []byte) int {
	t.Helper()
	tails := []string{"\x00", "\n", endMark, string(whole), strings.Repeat("\x00", 4096)}
	for _, more := range tails {
		if _, _, f := decode(append(bytes.Clone(whole), more...)); f == nil || f.reason != reasonTrailing {
			t.Fatalf("%d bytes more: got %v, want trailing", len(more), f)
		}
	}
	return len(tails)
}

// zeroed clears blocks of 512 bytes at each sector, and up to the end.
func zeroed(t *testing.T, whole []byte) (n int) {
	t.Helper()
	for at := 0; at < len(whole); at += 512 {
		for _, end := range []int{min(at+512, len(whole)), len(whole)} {
			data := bytes.Clone(whole)
			clear(data[at:end])
			if _, _, f := decode(data); f == nil {
				t.Fatalf("bytes %d to %d zeroed: accepted", at, end)
			}
			n++
		}
	}
	return n
}

// newer renders a record of a format that does not exist yet, by the one rule that all formats share.
func newer(version string) []byte {
	line := magic + " " + version + " something=else"
	sum := sha256.Sum256([]byte(line))
	return []byte(line + headSumKey + hex.EncodeToString(sum[:]) + "\nwhatever follows")
}

func TestNewerFormatIsToldFromDamage(t *testing.T) {
	tests := []struct {
		version string
		want    string
	}{
		{"2", reasonTooNew}, {"17", reasonTooNew}, {"4294967295", reasonTooNew},
		{"0", reasonHeader}, {"1", reasonHeader}, {"x", reasonHeader}, {"-2", reasonHeader}, {"4294967296", reasonHeader}, {"", reasonHeader},
	}
	for _, tt := range tests {
		if _, _, f := decode(newer(tt.version)); f == nil || f.reason != tt.want {
			t.Errorf("version %q: got %v, want %s", tt.version, f, tt.want)
		}
	}
	data := newer("2")
	data[len(magic)+4] ^= 1
	if _, _, f := decode(data); f == nil || f.reason != reasonHeader {
		t.Errorf("version 2 with a flipped bit: got %v, want %s", f, reasonHeader)
	}
}

// A header has one spelling: what verifies and is spelt otherwise was not written by this package.
func TestHeaderHasOneSpelling(t *testing.T) {
	sign := func(line string) []byte {
		sum := sha256.Sum256([]byte(line))
		return []byte(line + headSumKey + hex.EncodeToString(sum[:]) + "\n" + endMark)
	}
	h := sample()
	h.payload = digestOf(nil)
	whole := string(h.appendTo(nil))
	line := whole[:strings.Index(whole, headSumKey)]
	if _, _, f := decode(sign(line)); f != nil {
		t.Fatalf("the header as it is: got %s: %v", f.reason, f.err)
	}
	changes := [][2]string{
		{"belay-record 1", "belay-record 01"}, {"belay-record 1", "belay-record +1"}, {"length=0", "length=00"}, {"length=0", "length=-0"},
		{"length=0", "length=0x0"}, {"length=0", "length=9999999999999999999"}, {" writer=", "  writer="}, {"writer=v1.2.3", "writer="},
		{"writer=v1.2.3", "writer=v 1"}, {"machine=0011", "machine=001"}, {"machine=0011", "machine=ZZ11"}, {"stream=check", "stream=../check"},
		{"generation=000", "generation=00"}, {"generation=000000000000001a", "generation=0000000000000000"},
		{"generation=000000000000001a", "generation=000000000000001A"}, {"payload-sha256=", "payload-sha256=00"}, {" length=", " size="},
	}
	for _, c := range changes {
		if _, _, f := decode(sign(strings.Replace(line, c[0], c[1], 1))); f == nil || f.reason != reasonHeader {
			t.Errorf("%q for %q: got %v, want %s", c[1], c[0], f, reasonHeader)
		}
	}
}

// No part of a payload is in an error.
// S-CS-07.
func TestErrorsHoldNoPayload(t *testing.T) {
	const canary = "tOkEn-canary"
	whole := encode(sample(), []byte(strings.Repeat(canary, 100)))
	for i := range len(whole) * 8 {
		data := bytes.Clone(whole)
		data[i/8] ^= 1 << (i % 8)
		_, _, f := decode(data)
		if f.err != nil && strings.Contains(f.err.Error(), canary) {
			t.Fatalf("bit %d flipped: the error holds the payload: %v", i, f.err)
		}
	}
}

// FuzzDecode: whatever is accepted is exactly what would be written for it, as a second, naive reader sees it too.
func FuzzDecode(f *testing.F) {
	f.Add(encode(sample(), nil))
	f.Add(encode(sample(), []byte("payload\nwith lines\n")))
	f.Add(newer("2"))
	f.Add([]byte{})
	f.Add([]byte(strings.Repeat("a", headerMax)))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		h, payload, flaw := decode(data)
		if !bytes.Equal(before, data) {
			t.Fatal("decode changed its input")
		}
		if flaw != nil {
			if flaw.reason == "" {
				t.Fatal("refused without a reason")
			}
			return
		}
		if again := encode(h, payload); !bytes.Equal(again, data) {
			t.Fatalf("accepted, but written differently: got %q, want %q", again, data)
		}
		if naive := naiveRead(data); !bytes.Equal(naive, payload) {
			t.Fatalf("two readers accept two payloads: %q and %q", payload, naive)
		}
	})
}

// naiveRead takes the payload between the first newline and the end mark, by the length that the header says.
func naiveRead(data []byte) []byte {
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	fields := strings.Fields(string(line))
	at := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, "length=") })
	var n int
	if _, err := fmt.Sscanf(fields[at], "length=%d", &n); err != nil {
		return nil
	}
	return rest[:n]
}
