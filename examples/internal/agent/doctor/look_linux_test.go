// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/belayproject/belay/examples/internal/agent/doctor"
)

// What the machine says of a directory is what is there.
func TestLookAtDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if d := doctor.LookAtDir(dir); d.Err != nil || d.NotDir || d.Mode != 0o755 || d.Foreign {
		t.Errorf("of an open directory: %+v", d)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d := doctor.LookAtDir(file); !d.NotDir {
		t.Errorf("of a file: %+v", d)
	}
	if d := doctor.LookAtDir(filepath.Join(dir, "absent")); !errors.Is(d.Err, fs.ErrNotExist) {
		t.Errorf("of nothing: %+v", d)
	}
	if d := doctor.LookAtDir("/proc"); d.FileSystem != "" {
		t.Errorf("/proc is on %q, want a file system without a name", d.FileSystem)
	}
	if doctor.LookAtClock() == nil {
		t.Error("nothing is known of the clock")
	}
}
