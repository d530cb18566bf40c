// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package filesum

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func write(t *testing.T, path, text string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// The digest is that of the content, also where size and time of two contents are the same.
func TestDigestIsOfTheContent(t *testing.T) {
	path, old := filepath.Join(t.TempDir(), "program"), time.Now().Add(-time.Hour).Truncate(time.Second)
	var c Cache
	for _, text := range []string{"one", "two", "three", ""} {
		write(t, path, text, old)
		if sum, err := c.DigestOf(path); err != nil || sum != sumOf(text) {
			t.Errorf("DigestOf(%q) = %q, %v, want %q", text, sum, err, sumOf(text))
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if sum, err := c.DigestOf(path); !os.IsNotExist(err) || sum != "" {
		t.Errorf("DigestOf without a file = %q, %v, want that it does not exist", sum, err)
	}
}

// What is remembered is used for the same file alone, and only for one that has rested.
func TestCacheHoldsForTheSameFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	write(t, path, "one", time.Now())
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	c := Cache{path: path, info: info, sum: "remembered"}
	if sum, err := c.DigestOf(path); err != nil || sum != "remembered" {
		t.Errorf("DigestOf = %q, %v, want what is remembered", sum, err)
	}
	var fresh Cache
	if _, err := fresh.DigestOf(path); err != nil || fresh.info != nil {
		t.Errorf("of a file that has just changed %v is remembered, %v, want nothing", fresh.info, err)
	}
	other := path + "2"
	write(t, other, "one", info.ModTime())
	if sum, err := c.DigestOf(other); err != nil || sum != sumOf("one") {
		t.Errorf("DigestOf of another file = %q, %v, want its own", sum, err)
	}
}
