// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/checkpoint"
)

func openFiles(t *testing.T, home string) *checkpoint.FileSet {
	t.Helper()
	set, err := checkpoint.OpenFileSet(t.Context(), home, checkpoint.Options{Ballast: -1})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// wantPlain checks the mode and the content of a file; content "" wants no file.
func wantPlain(t *testing.T, path string, mode fs.FileMode, content string) {
	t.Helper()
	info, err := os.Lstat(path)
	if content == "" {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there (%v), want no file", path, err)
		}
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	got, err := os.ReadFile(path)
	if err != nil || info.Mode() != mode || string(got) != content {
		t.Errorf("%s is %v %q (%v), want %v %q", path, info.Mode(), got, err, mode, content)
	}
}

// wantOnly checks that a directory has these entries and no temporary file.
func wantOnly(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	if err != nil || fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("%s holds %v (%v), want %v", dir, names, err, want)
	}
}

// A set makes directories and files, with the modes that were asked for whatever the umask is;
// replaces and removes files; and leaves nothing else.
func TestFileSetApplies(t *testing.T) {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	dir := t.TempDir()
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "new", "deep", "b"), filepath.Join(dir, "c")
	set := openFiles(t, filepath.Join(dir, "set"))
	for range 2 { // what is there already is no matter
		err := set.Apply(t.Context(), []checkpoint.File{
			{Path: a, Mode: 0o644, Content: []byte("a1")}, {Path: b, Content: []byte("b1")},
			{Path: c, Mode: 0o400, Content: []byte("c1")},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	wantPlain(t, a, 0o644, "a1")
	wantPlain(t, b, 0o600, "b1")
	wantPlain(t, c, 0o400, "c1")
	if info, err := os.Stat(filepath.Dir(b)); err != nil || info.Mode() != fs.ModeDir|0o755 {
		t.Errorf("a directory that was made: %v (%v), want mode 0755", info, err)
	}
	err := set.Apply(t.Context(), []checkpoint.File{
		{Path: a, Absent: true}, {Path: c, Content: []byte{}}, {Path: dir + "/gone/x", Absent: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	wantOnly(t, dir, "c", "new", "set")
	wantOnly(t, filepath.Dir(b), "b")
	if err := set.Apply(t.Context(), nil); err != nil {
		t.Errorf("a set without files: %v, want nil", err)
	}
}

// What can not be meant, and what is not a plain file, is refused, and nothing is changed.
func TestFileSetRefuses(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "set")
	set := openFiles(t, home)
	path := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(path("file"), []byte("kept"), 0o644))
	must(os.Symlink(path("file"), path("link")))
	must(os.Symlink(dir, path("dirlink")))
	must(os.Mkdir(path("dir"), 0o700))
	must(unix.Mkfifo(path("pipe"), 0o600))
	must(os.Mkdir(path("open"), 0o700))
	must(os.Chmod(path("open"), 0o777))
	must(os.WriteFile(path("large"), make([]byte, 4<<20+1), 0o600))
	new := []byte("new")
	for name, c := range map[string]struct {
		file checkpoint.File
		want error
	}{
		"relative":            {checkpoint.File{Path: "file"}, nil},
		"empty":               {checkpoint.File{}, nil},
		"the root":            {checkpoint.File{Path: "/"}, nil},
		"escapes":             {checkpoint.File{Path: dir + "/dir/../file", Content: new}, nil},
		"a zero byte":         {checkpoint.File{Path: path("a\x00b")}, nil},
		"a long name":         {checkpoint.File{Path: path(strings.Repeat("n", 256))}, nil},
		"a temporary name":    {checkpoint.File{Path: path(".a.belay-b.old")}, nil},
		"a mode":              {checkpoint.File{Path: path("file"), Mode: fs.ModeSetuid | 0o755}, nil},
		"an owner":            {checkpoint.File{Path: path("file"), Owner: "root"}, nil},
		"absent with content": {checkpoint.File{Path: path("file"), Absent: true, Content: new}, nil},
		"large":               {checkpoint.File{Path: path("x"), Content: make([]byte, 4<<20+1)}, checkpoint.ErrTooLarge},
		"large before":        {checkpoint.File{Path: path("large"), Content: new}, checkpoint.ErrTooLarge},
		"a link":              {checkpoint.File{Path: path("link"), Content: new}, checkpoint.ErrUntrusted},
		"a directory":         {checkpoint.File{Path: path("dir"), Content: new}, checkpoint.ErrUntrusted},
		"a pipe":              {checkpoint.File{Path: path("pipe"), Content: new}, checkpoint.ErrUntrusted},
		"below a file":        {checkpoint.File{Path: path("file/x"), Content: new}, nil},
		"open to all":         {checkpoint.File{Path: path("open/new/x"), Content: new}, checkpoint.ErrUntrusted},
		"the journal":         {checkpoint.File{Path: filepath.Join(home, "x"), Content: new}, checkpoint.ErrUntrusted},
		"twice":               {checkpoint.File{Path: path("other"), Content: new}, nil},
		"twice by a link":     {checkpoint.File{Path: path("dirlink/other"), Content: new}, nil},
		"above another":       {checkpoint.File{Path: filepath.Dir(path("other")), Content: new}, nil},
	} {
		err := set.Apply(t.Context(), []checkpoint.File{{Path: path("other"), Content: new}, c.file})
		old := errors.Is(err, checkpoint.ErrNotWritten) && !errors.Is(err, checkpoint.ErrIndeterminate)
		if !old || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want ErrNotWritten and %v", name, err, c.want)
		}
		wantPlain(t, path("other"), 0, "")
	}
	wantPlain(t, path("file"), 0o644, "kept")
	wantOnly(t, dir, "dir", "dirlink", "file", "large", "link", "open", "pipe", "set")
	wantOnly(t, path("open"))
}

// Owners: root gives files away, and gets back what was; any other user is refused before anything
// changes.
func TestFileSetOwners(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	set := openFiles(t, filepath.Join(dir, "set"))
	if err := os.WriteFile(a, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	owner := func(path string) [2]uint32 {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		st := info.Sys().(*syscall.Stat_t)
		return [2]uint32{st.Uid, st.Gid}
	}
	files := []checkpoint.File{
		{Path: a, Content: []byte("new"), Owner: "65533:65532"},
		{Path: b, Content: []byte("new")},
	}
	err := set.Apply(t.Context(), files)
	if os.Geteuid() != 0 {
		if !errors.Is(err, checkpoint.ErrNotWritten) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("given away without the right: %v, want ErrNotWritten and ErrPermission", err)
		}
		wantPlain(t, a, 0o640, "old")
		wantOnly(t, dir, "a", "set")
		return
	}
	if err != nil || owner(a) != [2]uint32{65533, 65532} || owner(b) != [2]uint32{0, uint32(os.Getegid())} {
		t.Errorf("owners are %v and %v (%v), want 65533:65532 and this process", owner(a), owner(b), err)
	}
	// Undone, it is theirs again.
	undone := 0
	for at := 1; at < 60; at++ {
		if err := errors.Join(os.WriteFile(a, []byte("old"), 0o640), os.Chown(a, 65533, 65532)); err != nil {
			t.Fatal(err)
		}
		foreign := func() error { return os.WriteFile(b, []byte("of another"), 0o600) }
		ctx := &countdown{Context: t.Context(), left: at, act: foreign}
		err := set.Apply(ctx, []checkpoint.File{{Path: a, Content: []byte("newer")}, {Path: b, Content: []byte("newer")}})
		if err == nil {
			continue
		}
		undone++
		if owner(a) != [2]uint32{65533, 65532} {
			t.Errorf("undone (%v), the owner is %v, want 65533:65532", err, owner(a))
		}
	}
	if undone == 0 {
		t.Error("no set was undone")
	}
}

// countdown is a context that acts when it was asked so many times for its end; then, if cancel is
// set, it is over.
type countdown struct {
	context.Context
	left   int
	act    func() error
	cancel bool
	err    error
	over   bool
}

func (c *countdown) Err() error {
	if c.left--; c.left == 0 {
		if c.act != nil {
			c.err = c.act()
		}
		c.over = c.cancel
	}
	if c.over {
		return context.Canceled
	}
	return nil
}

// disturbApply applies a set of the files a, which is there, and b. At a step, the context ends, or another program
// writes b.
func disturbApply(t *testing.T, dir string, at int, cancel bool) error {
	t.Helper()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.WriteFile(a, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	set := openFiles(t, filepath.Join(dir, "set"))
	ctx := &countdown{Context: t.Context(), left: at, cancel: cancel}
	if !cancel {
		ctx.act = func() error { return os.WriteFile(b, []byte("of another"), 0o600) }
	}
	err := set.Apply(ctx, []checkpoint.File{{Path: a, Content: []byte("new")}, {Path: b, Content: []byte("new")}})
	if errors.Join(ctx.err, os.RemoveAll(filepath.Join(dir, "set"))) != nil {
		t.Fatal(ctx.err)
	}
	return err
}

// Wherever the context ends, or another program writes one of the files, the set is whole or as it
// was; the write of the other program stays.
func TestFileSetIsUndoneAtEveryStep(t *testing.T) {
	whole, undone, foreign := 0, 0, 0
	for _, cancel := range []bool{true, false} {
		for at := 1; at < 60; at++ {
			dir := t.TempDir()
			a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
			err := disturbApply(t, dir, at, cancel)
			got, _ := os.ReadFile(b)
			switch {
			case err == nil && string(got) == "new":
				whole++
				wantPlain(t, a, 0o600, "new")
			case err == nil && !cancel && string(got) == "of another": // an edit of the new file
				wantPlain(t, a, 0o600, "new")
			case !errors.Is(err, checkpoint.ErrNotWritten):
				t.Errorf("step %d: %v, want ErrNotWritten", at, err)
			case cancel:
				undone++
				wantPlain(t, a, 0o640, "old")
				wantOnly(t, dir, "a")
			default:
				foreign++
				wantPlain(t, a, 0o640, "old")
				wantPlain(t, b, 0o600, "of another")
				wantOnly(t, dir, "a", "b")
			}
		}
	}
	if whole == 0 || undone == 0 || foreign == 0 {
		t.Errorf("whole %d times, undone %d times, with a write of another %d times: want each", whole, undone, foreign)
	}
}

// Two sets with one file, each by two goroutines: the files end as one of the sets wanted them or,
// where they collided, as they were before; every call says which.
func TestTwoFileSetsWithOnePath(t *testing.T) {
	dir := t.TempDir()
	shared := filepath.Join(dir, "shared")
	var wg sync.WaitGroup
	for i := range 2 {
		set := openFiles(t, filepath.Join(dir, fmt.Sprint("set", i)))
		own := filepath.Join(dir, fmt.Sprint("own", i))
		for range 2 {
			wg.Go(func() {
				for n := range 4 {
					content := fmt.Appendf(nil, "%d %d", i, n)
					err := set.Apply(t.Context(), []checkpoint.File{{Path: own, Content: content}, {Path: shared, Content: content}})
					if err != nil && !errors.Is(err, checkpoint.ErrNotWritten) {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	wantOnly(t, dir, "own0", "own1", "set0", "set1", "shared")
}

// A set whose files another process applies waits for its turn as long as the context.
func TestFileSetWaitsForTheLock(t *testing.T) {
	dir := t.TempDir()
	set := openFiles(t, filepath.Join(dir, "set"))
	held, err := checkpoint.Open(filepath.Join(dir, "set"), checkpoint.Options{Ballast: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err = set.Apply(ctx, []checkpoint.File{{Path: filepath.Join(dir, "a"), Content: []byte("a")}})
	for _, want := range []error{checkpoint.ErrLocked, checkpoint.ErrNotWritten, context.DeadlineExceeded} {
		if !errors.Is(err, want) {
			t.Errorf("held: %v, want it to match %q", err, want)
		}
	}
}

// A FileSet that OpenFileSet has not made answers with an error.
func TestFileSetThatWasNotOpened(t *testing.T) {
	for _, set := range []*checkpoint.FileSet{nil, {}} {
		err := set.Apply(t.Context(), []checkpoint.File{{Path: "/x"}})
		if !errors.Is(err, checkpoint.ErrNotOpen) || !errors.Is(err, checkpoint.ErrNotWritten) {
			t.Errorf("Apply: %v, want ErrNotOpen and ErrNotWritten", err)
		}
	}
}

// A damaged journal costs no file anything, is told, and the next Apply works.
func TestFileSetWithADamagedJournal(t *testing.T) {
	dir := t.TempDir()
	home, a := filepath.Join(dir, "set"), filepath.Join(dir, "a")
	set := openFiles(t, home)
	for _, content := range []string{"one", "two"} {
		if err := set.Apply(t.Context(), []checkpoint.File{{Path: a, Content: []byte(content)}}); err != nil {
			t.Fatal(err)
		}
	}
	records, err := filepath.Glob(filepath.Join(home, "files.*"))
	if err != nil || len(records) == 0 {
		t.Fatal(records, err)
	}
	if err := os.Truncate(records[len(records)-1], 30); err != nil {
		t.Fatal(err)
	}
	told := 0
	o := checkpoint.Options{Ballast: -1, OnDamage: func(checkpoint.Damage) { told++ }}
	set, err = checkpoint.OpenFileSet(t.Context(), home, o)
	if err != nil || told == 0 {
		t.Fatalf("OpenFileSet: %v, and OnDamage was told %d times, want nil, and at least once", err, told)
	}
	wantPlain(t, a, 0o600, "two")
	if err := set.Apply(t.Context(), []checkpoint.File{{Path: a, Content: []byte("three")}}); err != nil {
		t.Fatal(err)
	}
	wantPlain(t, a, 0o600, "three")
}
