// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The log is read as it grows, each request counts once although a watch has two events, and one that has become shorter is an error and
// not a count that is too low.
func TestLogCountsWhatItHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	event := func(id, subresource string) string {
		return fmt.Sprintf(`{"auditID":%q,"verb":"create","userAgent":"ours","objectRef":{"resource":"pods","subresource":%q}}`, id, subresource) + "\n"
	}
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, all, evictions := New(path), 0, 0
	read := func() error {
		return l.Read(func(r Request) {
			if r.Agent != "ours" || r.Verb != "create" || r.Resource != "pods" {
				t.Errorf("got %+v, want what was written", r)
			}
			if all++; r.Subresource == "eviction" {
				evictions++
			}
		})
	}
	whole := event("1", "eviction") + event("2", "") + event("2", "")
	half := event("3", "eviction")
	write(whole + half[:10])
	if err := read(); err != nil || all != 2 || evictions != 1 {
		t.Errorf("got %d requests, %d evictions, %v, want 2 and 1: the last line is not whole", all, evictions, err)
	}
	write(whole + half)
	if err := read(); err != nil || all != 3 || evictions != 2 {
		t.Errorf("got %d requests, %d evictions, %v, want 3 and 2", all, evictions, err)
	}
	write(half)
	want := fmt.Sprintf("it has %d bytes, after %d that were read", len(half), len(whole)+len(half))
	if err := read(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it to say %q", err, want)
	}
}
