// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// R-CS-13: a UID as a stream name is one safe path element, or it is refused.
// S-CS-01.
func TestNamesStayInsideTheStore(t *testing.T) {
	long := strings.Repeat("a", segmentMax)
	good := []string{
		"current", "last-known-good", "v1.2.3/bad-configs", "checkpoints/0f2a4c7e-3d1b-4a5e-9c8d-7b6a5f4e3d2c", long, long + "/" + long,
		"a.b_c-d", "0", "good/0f2a4c7e.0123456789ab", "a.unsure", "a.0000000000000001", "x/a.0000000000000001.foreign",
	}
	for _, n := range good {
		if err := ValidateStream(n); err != nil {
			t.Errorf("ValidateStream(%q): got %v, want nil", n, err)
		}
	}
	bad := []string{
		"", "/", "a/", "/a", "a/b/c", ".", "..", "../a", "a/..", "a/../b", "a..b", ".lock", ".tmp-1", "-a", "_a", "A", "aB", "a b", "a\x00",
		"a\n", "ä", "a\\b", "a:b", "a%2fb", long + "a", "a/" + long + "a", "аbc", "a.0000000000000001/b", "a.unsure/b",
		"a.0000000000000001.damaged-digest/b", "checkpoints/..", "checkpoints/.x", "~", "a*",
	}
	for _, n := range bad {
		if err := ValidateStream(n); !errors.Is(err, ErrName) {
			t.Errorf("ValidateStream(%q): got %v, want ErrName", n, err)
		}
	}
}

func TestFileNamesHaveOneReading(t *testing.T) {
	tests := []struct {
		file string
		want fileName
		ok   bool
	}{
		{"a.0000000000000001", fileName{base: "a", gen: 1}, true},
		{"a.0000000000000002.0000000000000001", fileName{base: "a.0000000000000002", gen: 1}, true},
		{"a.3fffffffffffffff", fileName{base: "a", gen: maxGeneration}, true},
		{"a.b.unsure", fileName{base: "a.b", kind: kindUnsure}, true},
		{"a.unsure.0000000000000007", fileName{base: "a.unsure", gen: 7}, true},
		{"a.0000000000000001.foreign", fileName{base: "a", gen: 1, kind: kindForeign, reason: reasonForeign}, true},
		{"a.000000000000000a.damaged-digest", fileName{base: "a", gen: 10, kind: kindDamaged, reason: reasonDigest}, true},
		{"a.4000000000000000", fileName{}, false}, // out of any writer's reach: a stranger's, it uses up no number
		{"a.ffffffffffffffff", fileName{}, false},
		{"a.0000000000000000", fileName{}, false},
		{"a.000000000000000A", fileName{}, false},
		{"a.00000000000000001", fileName{}, false},
		{"a", fileName{}, false},
		{".lock", fileName{}, false},
		{".tmp-1", fileName{}, false},
		{".floor.0000000000000001", fileName{}, false},
		{"a.damaged-digest", fileName{}, false},
		{"a.0000000000000001.damaged-", fileName{}, false},
		{"A.0000000000000001", fileName{}, false},
	}
	for _, tt := range tests {
		got, ok := parseFile(tt.file)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("parseFile(%q): got %+v, %t, want %+v, %t", tt.file, got, ok, tt.want, tt.ok)
		}
	}
}

// FuzzNames: whatever is accepted as a stream is a path below the store, and its files are read back as its own.
// S-CS-01.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"a", "a/b", "../x", "a.0000000000000001", "a.unsure", "x/a.b.damaged-digest", "\x00"} {
		f.Add(s, uint64(1))
	}
	f.Fuzz(func(t *testing.T, s string, gen uint64) {
		n, err := parseName(s)
		if err != nil {
			if !errors.Is(err, ErrName) {
				t.Fatalf("parseName(%q): got %v, want ErrName", s, err)
			}
			return
		}
		if n.String() != s || filepath.Clean(s) != s || !filepath.IsLocal(s) {
			t.Fatalf("parseName(%q) = %+v, which is not the path it was given", s, n)
		}
		if gen = gen&maxGeneration | 1; gen == 0 {
			return
		}
		for file, kind := range map[string]fileKind{
			recordFile(n.base, gen): kindRecord, asideFile(n.base, gen, reasonForeign): kindForeign,
			asideFile(n.base, gen, reasonDigest): kindDamaged, unsureFile(n.base): kindUnsure,
		} {
			if got, ok := parseFile(file); !ok || got.base != n.base || got.kind != kind {
				t.Fatalf("parseFile(%q): got %+v, %t, want stream %q of kind %d", file, got, ok, n.base, kind)
			}
			if len(filepath.Base(file)) > 255 {
				t.Fatalf("file name %q has %d bytes, a file system takes 255", file, len(file))
			}
		}
	})
}
