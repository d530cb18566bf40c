// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/lkg"
)

// The file acknowledges the config that it names, by UID or digest, and no other; trouble is no word.
func TestAckFileNamesOneConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ack")
	a := ack(&settings.Run{AckFile: path})
	r := lkg.Ref{UID: "u1", Digest: "sha256:1"}
	if given, err := a.Given(t.Context(), r); given || err != nil {
		t.Errorf("without a file it is given: %t, %v", given, err)
	}
	for text, want := range map[string]bool{"u1\n": true, " sha256:1 ": true, "u2": false, "": false, "u1 u2": false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if given, err := a.Given(t.Context(), r); given != want || err != nil {
			t.Errorf("%q: given %t, %v; want %t", text, given, err, want)
		}
		if given, err := a.Given(t.Context(), lkg.Ref{}); given || err != nil {
			t.Errorf("%q: given %t, %v, for a config without a name", text, given, err)
		}
	}
	if given, err := ack(&settings.Run{AckFile: t.TempDir()}).Given(t.Context(), r); given || err == nil {
		t.Errorf("a directory: given %t, %v; want an error", given, err)
	}
	if ack(&settings.Run{}) != nil {
		t.Error("nobody waits where no file is named")
	}
}
