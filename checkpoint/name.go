// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

const (
	segmentMax = 128
	// maxGeneration leaves out numbers that no writer reaches, so that a planted file can not use up the numbers.
	maxGeneration = 1<<62 - 1
	genDigits     = 16
)

// Names of our own files start with a dot, which no stream does.
const (
	lockFile    = ".lock"
	ballastFile = ".ballast"
	tempPrefix  = ".tmp-"
	floorPrefix = ".floor."
)

// name is a stream name, taken apart.
type name struct {
	dir  string // "" = the store's own directory
	base string
	full string // dir/base, or base
}

func nameIn(dir, base string) name {
	if dir == "" {
		return name{base: base, full: base}
	}
	return name{dir: dir, base: base, full: dir + "/" + base}
}

func (n name) String() string { return n.full }

// ValidateStream returns nil for a name that a Store accepts: one or two segments with a slash between them, each of 1
// to 128 characters from a-z, 0-9, dot, underscore and minus, starting with a letter or a digit, without two dots in a
// row. The first of two must not read as the name of a record's file. Other errors match [ErrName].
func ValidateStream(stream string) error {
	_, err := parseName(stream)
	return err
}

func parseName(stream string) (name, error) {
	dir, base, nested := strings.Cut(stream, "/")
	if !nested {
		dir, base = "", stream
	} else if err := checkDir(dir); err != nil {
		return name{}, err
	}
	if problem := segmentProblem(base); problem != "" {
		return name{}, fmt.Errorf("%w: %s %s", ErrName, quoted(stream), problem)
	}
	return name{dir: dir, base: base, full: stream}, nil
}

// checkDir judges the directory segment of a stream.
func checkDir(dir string) error {
	problem := segmentProblem(dir)
	if _, ok := parseFile(dir); problem == "" && ok {
		problem = "reads as the name of a record's file"
	}
	if problem != "" {
		return fmt.Errorf("%w: directory %s %s", ErrName, quoted(dir), problem)
	}
	return nil
}

func segmentProblem(s string) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > segmentMax:
		return "is longer than " + strconv.Itoa(segmentMax) + " characters"
	case strings.Contains(s, ".."):
		return "has two dots in a row"
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '_' && c != '-') {
			return "has a character that is not allowed at position " + strconv.Itoa(i)
		}
	}
	return ""
}

// quoted quotes what a caller gave, cut to a length that fits into a message.
func quoted(s string) string {
	const limit = 300
	if len(s) > limit {
		return strconv.Quote(s[:limit]) + "… (" + strconv.Itoa(len(s)) + " bytes)"
	}
	return strconv.Quote(s)
}

// fileKind says what the name of a file makes it.
type fileKind int

const (
	kindRecord  fileKind = iota // base.generation
	kindDamaged                 // base.generation.damaged-reason
	kindForeign                 // base.generation.foreign
	kindUnsure                  // base.unsure: the last Put was not confirmed
)

const (
	damagedTail = "damaged-"
	foreignTail = "foreign"
	unsureTail  = "unsure"
)

type fileName struct {
	base   string
	gen    uint64
	kind   fileKind
	reason string
}

// parseFile takes a file's name apart from its end, so that it has one reading whatever dots the stream's name has.
func parseFile(file string) (fileName, bool) {
	base, tail, ok := cutLast(file)
	if !ok {
		return fileName{}, false
	}
	f := fileName{base: base}
	reason, damaged := strings.CutPrefix(tail, damagedTail)
	switch {
	case tail == unsureTail:
		f.kind = kindUnsure
		return f, segmentProblem(base) == ""
	case damaged && reason != "":
		f.kind, f.reason = kindDamaged, reason
	case tail == foreignTail:
		f.kind, f.reason = kindForeign, reasonForeign
	default:
		f.gen, ok = parseGen(tail)
		return f, ok && segmentProblem(base) == ""
	}
	if f.base, tail, ok = cutLast(base); !ok {
		return fileName{}, false
	}
	f.gen, ok = parseGen(tail)
	return f, ok && segmentProblem(f.base) == ""
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

func parseGen(s string) (uint64, bool) {
	if len(s) != genDigits || strings.ToLower(s) != s {
		return 0, false
	}
	gen, err := strconv.ParseUint(s, 16, 64)
	return gen, err == nil && gen > 0 && gen <= maxGeneration
}

// recordFile is the name of a generation's file.
func recordFile(base string, gen uint64) string {
	var room [segmentMax + 1 + genDigits]byte
	return string(appendGen(append(append(room[:0], base...), '.'), gen))
}

func asideFile(base string, gen uint64, r string) string {
	if r == reasonForeign {
		return recordFile(base, gen) + "." + foreignTail
	}
	return recordFile(base, gen) + "." + damagedTail + r
}

func unsureFile(base string) string { return base + "." + unsureTail }

func floorFile(gen uint64) string { return string(appendGen([]byte(floorPrefix), gen)) }

func appendGen(b []byte, gen uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[gen>>shift&15])
	}
	return b
}

func descending(a, b uint64) int { return cmp.Compare(b, a) }
