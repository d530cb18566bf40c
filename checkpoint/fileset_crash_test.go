// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/checkpoint/checkpointtest"
	"github.com/belayproject/belay/internal/raceshare"
)

// D1 for a FileSet: a crash between any two calls of the disk, with any part of what was not
// synced, while sets are applied, while processes are killed in the middle, and while other
// programs write the same files. Each state is whole or undone.
func TestFaultD1FileSetIsWholeOrUndone(t *testing.T) {
	bar := amount(raceshare.Of(t, 10_000), 1_000_000, 20_000_000)
	total := seeds(t, bar, all, func(seed uint64) checkpointtest.Crash {
		return checkpointtest.Crash{Work: setHistory(seed, 6), Check: judgeSet(true), Seed: seed}
	})
	line(t, "D1.FileSet", "states", total.States, bar, fmt.Sprintf("recoveries=%d ", total.Checked))
}

// D4 for a FileSet: crashes in the recovery from a crash, three deep.
func TestFaultD4FileSetCrashesDuringRecovery(t *testing.T) {
	bar := amount(raceshare.Of(t, 4_000), 100_000, 5_000_000)
	total := seeds(t, bar, nested, func(seed uint64) checkpointtest.Crash {
		work := setHistory(seed, 1+int(seed%2))
		return checkpointtest.Crash{Work: work, Check: judgeSet(true), Seed: seed, Depth: 3, PerPoint: 64}
	})
	line(t, "D4.FileSet", "states", total.Nested, bar, fmt.Sprintf("depth=3 recoveries=%d ", total.Checked))
}

// D5 for a FileSet: every call of the disk fails, in every way. An error says what happened; the
// next process finds a whole set.
func TestFaultD5FileSetEveryCallFails(t *testing.T) {
	runs := 0
	for _, f := range checkpointtest.Faults() {
		for f.At = 0; ; f.At += amount(29, 5, 1) {
			d := checkpointtest.NewDisk()
			s := &setStory{d: d, rnd: rand.New(rand.NewPCG(5, 35)), faulty: true}
			if err := errors.Join(s.prepare(), s.open(), s.apply(s.drawSet())); err != nil {
				t.Fatal(err)
			}
			d.Inject(f)
			if err := s.eventfulSet(); err != nil {
				t.Fatalf("%v: %v", f, err)
			}
			struck := s.mended || d.Struck()
			d.Inject(checkpointtest.Fault{})
			if err := judgeSet(false)(d, d.Notes()); err != nil {
				t.Fatalf("%v: %v", f, err)
			}
			if !struck {
				break
			}
			runs++
		}
	}
	line(t, "D5.FileSet", "runs", runs, amount(200, 1000, 5000), fmt.Sprintf("kinds=%d ", len(checkpointtest.Faults())))
}

// D6 for a FileSet: an fsync or a rename fails once; what it should have made durable is lost, and
// later ones succeed.
func TestFaultD6FileSetLostSyncs(t *testing.T) {
	var total checkpointtest.Report
	points := 0
	for _, done := range []bool{false, true} {
		for at := 0; ; at += amount(5, 1, 1) * raceshare.Step(t) {
			f := checkpointtest.Fault{Err: syscall.EIO, At: at, Done: done}
			f.Calls = func(op string) bool { return op == "sync" || op == "rename" || op == "mkdir" }
			struck := false
			report, err := checkpointtest.Crash{
				Work: func(d *checkpointtest.Disk) error {
					s := &setStory{d: d, rnd: rand.New(rand.NewPCG(6, 35)), faulty: true}
					if err := errors.Join(s.prepare(), s.open(), s.apply(s.drawSet())); err != nil {
						return err
					}
					d.Settle()
					d.Inject(f)
					err := s.eventfulSet()
					struck = s.mended || d.Struck()
					return err
				},
				Check: judgeSet(false), PerPoint: amount(8, 64, 4096), Seed: uint64(at),
			}.Explore()
			if err != nil {
				t.Fatalf("%v: %v", f, err)
			}
			if !struck {
				break
			}
			points++
			total = total.Add(report)
		}
	}
	line(t, "D6.FileSet", "faults", points, amount(raceshare.Of(t, 20), 150, 150),
		fmt.Sprintf("model=memory states=%d ", total.States))
}

// cutBefore gives a disk on which a process that changed the old files was killed before a call.
func cutBefore(t *testing.T, old []checkpoint.File, call string, files ...checkpoint.File) *setStory {
	t.Helper()
	s := &setStory{d: checkpointtest.NewDisk(), rnd: rand.New(rand.NewPCG(1, 35))}
	if err := errors.Join(s.prepare(), s.open(), s.apply(old)); err != nil {
		t.Fatal(err)
	}
	cut := false
	s.killInApply(files, func(now string) bool {
		cut = cut || strings.HasPrefix(now, call)
		return cut
	})
	if !cut {
		t.Fatalf("the process was not killed before %q", call)
	}
	return s
}

// A directory gets mode 0755 where Apply made it, under any parent and after a kill. One that
// another program made, or closed since, stays closed.
func TestFileSetOpensItsOwnDirectoriesOnly(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, fs.ModeSetgid|0o755); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(dir, "sub")
	set := openFiles(t, filepath.Join(dir, "set"))
	file := checkpoint.File{Path: filepath.Join(sub, "a"), Content: []byte("a")}
	if err := set.Apply(t.Context(), []checkpoint.File{file}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(sub); err != nil || info.Mode() != fs.ModeDir|fs.ModeSetgid|0o755 {
		t.Errorf("below a directory with setgid: %v (%v), want setgid and 0755", info.Mode(), err)
	}
	new := checkpoint.File{Path: tlsDir + "/cert", Content: []byte("new")}
	for name, c := range map[string]struct {
		call string
		act  func(d *checkpointtest.Disk) error
		want fs.FileMode
	}{
		"made by Apply": {"mkdir /etc/tls/new", func(*checkpointtest.Disk) error { return nil }, 0o755},
		"cut off after its mkdir": {
			"mkdir /etc/tls", func(d *checkpointtest.Disk) error { return d.Mkdir("/etc/tls", 0o100) }, 0o755,
		},
		"made by another program": {
			"mkdir /etc/tls", func(d *checkpointtest.Disk) error { return d.Mkdir("/etc/tls", 0o700) }, 0o700,
		},
		"closed since": {
			"mkdir /etc/tls/new", func(d *checkpointtest.Disk) error { return d.Chmod("/etc/tls", 0o700) }, 0o700,
		},
	} {
		s := cutBefore(t, nil, c.call, new)
		err := errors.Join(c.act(s.d), s.open())
		info, failed := s.d.Stat("/etc/tls")
		if err != nil || failed != nil || info.Mode().Perm() != c.want {
			t.Errorf("%s: mode %v (%v, %v), want %v", name, info.Mode(), err, failed, c.want)
		}
	}
}

// wantUndecided checks that recovery, and an Apply, say which path they can not restore.
func wantUndecided(t *testing.T, s *setStory, path string) {
	t.Helper()
	_, err := openSet(s.d, checkpoint.OnDisk{}, setOptions)
	applied := s.set.Apply(t.Context(), []checkpoint.File{{Path: netDir + "/c.conf", Content: []byte("later")}})
	for _, err := range []error{err, applied} {
		if !errors.Is(err, checkpoint.ErrIndeterminate) || !strings.Contains(fmt.Sprint(err), path) {
			t.Errorf("recovery: %v, want ErrIndeterminate and the name of %s", err, path)
		}
	}
}

// wantTree checks the files after a recovery, and that nothing is beside them.
func wantTree(t *testing.T, s *setStory, want tree) {
	t.Helper()
	if _, err := recoverTree(s.d, []tree{want}, true); err != nil {
		t.Error(err)
	}
}

// A file that is not there, nor a copy of it, may be on a file system that is not mounted yet. The
// others are restored, and the set is undone when it is there again.
func TestFileSetWaitsForAFileSystem(t *testing.T) {
	const conf, cert = netDir + "/a.conf", tlsDir + "/cert"
	file := func(path, content string) checkpoint.File {
		if content == "" {
			return checkpoint.File{Path: path, Absent: true}
		}
		return checkpoint.File{Path: path, Mode: 0o600, Content: []byte(content)}
	}
	for name, c := range map[string]struct{ old, new string }{
		"replaced": {"old", "new"}, "made": {"", "new"}, "removed": {"old", ""},
	} {
		for _, mountPoint := range []bool{true, false} {
			old := []checkpoint.File{file(conf, "old"), file(cert, c.old), file(tlsDir+"/key", "key")}
			s := cutBefore(t, old, "replace "+netDir+"/.a.conf", file(cert, c.new), file(conf, "new"))
			err := s.d.Rename(tlsDir, "/etc/elsewhere")
			if mountPoint {
				err = errors.Join(err, s.d.Mkdir(tlsDir, 0o755))
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, mount point = %t", name, mountPoint)
			wantUndecided(t, s, cert)
			if mountPoint {
				err = s.d.Remove(tlsDir)
			}
			if err = errors.Join(err, s.d.Rename("/etc/elsewhere", tlsDir)); err != nil {
				t.Fatal(err)
			}
			wantTree(t, s, treeOf(old))
		}
	}
}

// The way out for a file that is lost, as a reboot loses those in /run: put any file in its place.
func TestFileSetGivesUpALostFile(t *testing.T) {
	const conf, cert = netDir + "/a.conf", tlsDir + "/cert"
	old := []checkpoint.File{
		{Path: conf, Mode: 0o600, Content: []byte("old")}, {Path: cert, Mode: 0o600, Content: []byte("old")},
	}
	s := cutBefore(t, old, "replace "+netDir+"/.a.conf",
		checkpoint.File{Path: cert, Content: []byte("new")}, checkpoint.File{Path: conf, Content: []byte("new")})
	if err := errors.Join(s.d.Rename(tlsDir, "/etc/elsewhere"), s.d.Mkdir(tlsDir, 0o755)); err != nil {
		t.Fatal(err)
	}
	wantUndecided(t, s, cert)
	if err := s.writeAsStranger(cert); err != nil {
		t.Fatal(err)
	}
	wantTree(t, s, tree{conf: "600:old", cert: fmt.Sprint("644:stranger ", s.count)})
}

// What can not be opened does not keep the files elsewhere from being restored.
func TestFileSetRestoresWhatItCan(t *testing.T) {
	const conf, cert = netDir + "/a.conf", tlsDir + "/cert"
	old := []checkpoint.File{
		{Path: conf, Mode: 0o600, Content: []byte("old")}, {Path: cert, Mode: 0o600, Content: []byte("old")},
	}
	s := cutBefore(t, old, "replace "+tlsDir+"/.cert",
		checkpoint.File{Path: conf, Content: []byte("new")}, checkpoint.File{Path: cert, Content: []byte("new")})
	if err := s.d.Rename(tlsDir, "/etc/elsewhere"); err != nil {
		t.Fatal(err)
	}
	f, err := s.d.OpenFile(tlsDir, os.O_WRONLY|os.O_CREATE, 0o600)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	wantUndecided(t, s, cert)
	if got, err := readValue(s.d, conf); err != nil || got != "600:old" {
		t.Errorf("the other file is %q (%v), want it restored", got, err)
	}
	if err := errors.Join(s.d.Remove(tlsDir), s.d.Rename("/etc/elsewhere", tlsDir)); err != nil {
		t.Fatal(err)
	}
	wantTree(t, s, treeOf(old))
}

// Where another program removes the copy of an old file, Apply does not say that the file is as it
// was.
func TestFileSetWithoutItsCopies(t *testing.T) {
	lost := 0
	for at := 1; at < 60; at++ {
		dir := t.TempDir()
		home, a := filepath.Join(dir, "set"), filepath.Join(dir, "a")
		if err := os.WriteFile(a, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx := &countdown{Context: t.Context(), left: at, cancel: true, act: func() error {
			copies, err := filepath.Glob(filepath.Join(dir, ".a.*.old"))
			for _, c := range copies {
				err = errors.Join(err, os.Remove(c))
			}
			return err
		}}
		err := openFiles(t, home).Apply(ctx, []checkpoint.File{
			{Path: a, Content: []byte("new")}, {Path: filepath.Join(dir, "b"), Content: []byte("new")},
		})
		if errors.Is(err, checkpoint.ErrNotWritten) {
			wantPlain(t, a, 0o600, "old")
		}
		if !errors.Is(err, checkpoint.ErrIndeterminate) {
			continue
		}
		lost++
		told := 0
		o := checkpoint.Options{Ballast: -1, OnDamage: func(checkpoint.Damage) { told++ }}
		if _, err := checkpoint.OpenFileSet(t.Context(), home, o); err != nil || told != 1 {
			t.Errorf("recovery without a copy: %v, and OnDamage was told %d times, want nil, and once", err, told)
		}
		wantOnly(t, dir, "a", "set")
	}
	if lost == 0 {
		t.Error("no copy was removed after the first rename")
	}
}
