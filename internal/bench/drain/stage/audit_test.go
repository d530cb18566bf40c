// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The log is read as it grows, each request counts once although a watch has two events, and one that has become shorter is an error and
// not a count that is too low.
func TestAuditLogCountsWhatItHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	event := func(id, subresource string) string {
		return fmt.Sprintf(`{"auditID":%q,"user":{"username":"ours"},"objectRef":{"subresource":%q}}`, id, subresource) + "\n"
	}
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := &auditLog{path: path, seen: map[string]bool{}, users: map[string]Served{}}
	whole := event("1", "eviction") + event("2", "") + event("2", "")
	half := event("3", "eviction")
	write(whole + half[:10])
	if got, err := a.of("ours"); err != nil || got != (Served{Requests: 2, Evictions: 1}) {
		t.Errorf("got %+v, %v, want 2 requests and 1 eviction: the last line is not whole", got, err)
	}
	write(whole + half)
	if got, err := a.of("ours"); err != nil || got != (Served{Requests: 3, Evictions: 2}) {
		t.Errorf("got %+v, %v, want 3 requests and 2 evictions", got, err)
	}
	write(half)
	_, err := a.of("ours")
	if want := fmt.Sprintf("it has %d bytes, after %d that were read", len(half), len(whole)+len(half)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it to say %q", err, want)
	}
}
