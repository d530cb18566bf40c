// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/belayproject/belay/configsync/file"
)

// R-CS-07: the init config is one file, or a directory of entries.
func TestInitReadsFileOrDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "kubelet", "a: 1\n", "crashLoopThreshold", "3")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(filepath.Join(dir, "kubelet"), link))
	whole := map[string]string{"kubelet": "a: 1\n", "crashLoopThreshold": "3"}
	for path, want := range map[string]map[string]string{
		dir: whole, filepath.Join(dir, "kubelet"): {"kubelet": "a: 1\n"}, link: {"kubelet": "a: 1\n"},
	} {
		if got, err := file.Init(path, "kubelet"); err != nil || !maps.Equal(got.Data, want) {
			t.Errorf("Init(%q) = %+v, %v; want %v", path, got, err, want)
		}
	}
}

func TestNoInitConfigIsNotExist(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "none"), filepath.Join(dir, "none", "kubelet")} {
		if o, err := file.Init(path, "kubelet"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Init(%q) = %+v, %v; want fs.ErrNotExist", path, o, err)
		}
	}
}

// R-CS-54: where an init config is meant to be, the defaults are never taken instead.
func TestBrokenInitConfigIsNotAbsence(t *testing.T) {
	for name, c := range map[string]struct {
		make    func(t *testing.T, path string)
		problem string
	}{
		"misnamed": {func(t *testing.T, path string) {
			must(t, os.Mkdir(path, 0o700))
			write(t, path, "kubelet.yaml", canary)
		}, `none is named "kubelet"`},
		"link to nowhere": {func(t *testing.T, path string) { must(t, os.Symlink("nowhere", path)) }, "following the link"},
		"link to nowhere inside": {func(t *testing.T, path string) {
			must(t, os.Mkdir(path, 0o700))
			must(t, os.Symlink("nowhere", filepath.Join(path, "kubelet")))
		}, "leads nowhere"},
		"pipe":      {func(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) }, "regular file"},
		"not UTF-8": {func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte(canary+"\xff"), 0o600)) }, "UTF-8"},
		"too large": {func(t *testing.T, path string) { must(t, os.WriteFile(path, make([]byte, 1<<20+1), 0o600)) }, "1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "init")
			c.make(t, path)
			o, err := file.Init(path, "kubelet")
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("Init = %+v, %v; want an error that is no absence", o, err)
			}
			if s := err.Error(); !strings.Contains(s, c.problem) || strings.Contains(s, canary) {
				t.Errorf("error %q, want one with %q and nothing of the content", s, c.problem)
			}
		})
	}
}

// An emptied file is handed on for the codec to refuse.
func TestEmptyInitFileIsAnEntry(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "kubelet", "")
	for _, path := range []string{dir, filepath.Join(dir, "kubelet")} {
		o, err := file.Init(path, "kubelet")
		if text, ok := o.Data["kubelet"]; err != nil || !ok || text != "" {
			t.Errorf("Init(%q) = %+v, %v; want an empty entry", path, o, err)
		}
	}
}
