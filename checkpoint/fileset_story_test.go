// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"slices"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/checkpoint/checkpointtest"
)

// setStory is a sequence of processes that apply sets, and of others that write to the same files.
type setStory struct {
	d      *checkpointtest.Disk
	rnd    *rand.Rand
	set    *checkpoint.FileSet
	count  int
	faulty bool
	mended bool
}

func (s *setStory) prepare() error {
	for _, dir := range []string{"/lib", "/lib/agent", "/etc", netDir} {
		if err := s.d.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	s.d.Settle()
	return nil
}

// drawSet makes a set of two to four files: new contents, with modes, and files that are to go.
func (s *setStory) drawSet() []checkpoint.File {
	var files []checkpoint.File
	for _, i := range s.rnd.Perm(len(setPaths))[:2+s.rnd.IntN(3)] {
		f := checkpoint.File{Path: setPaths[i]}
		s.count++
		if f.Absent = s.rnd.IntN(4) == 0; !f.Absent {
			f.Content = fmt.Appendf(nil, "number %d", s.count)
			f.Mode = []fs.FileMode{0o600, 0o644}[s.rnd.IntN(2)]
		}
		files = append(files, f)
	}
	return files
}

func treeOf(files []checkpoint.File) tree {
	t := tree{}
	for _, f := range files {
		t[f.Path] = ""
		if !f.Absent {
			t[f.Path] = fmt.Sprintf("%o:%s", f.Mode.Perm(), f.Content)
		}
	}
	return t
}

// open opens the set. Where a fault keeps it from that, the process is started again, as often as
// may be.
func (s *setStory) open() (err error) {
	for range 3 {
		if s.set, err = openSet(s.d, checkpoint.OnDisk{}, setOptions); err == nil || !s.faulty {
			return err
		}
	}
	s.d.Inject(checkpointtest.Fault{})
	s.mended = true
	s.set, err = openSet(s.d, checkpoint.OnDisk{}, setOptions)
	return err
}

func (s *setStory) apply(files []checkpoint.File) error {
	t := treeOf(files)
	before, _, unread := readTree(s.d)
	s.d.Note(setBegun{t})
	err := s.set.Apply(context.Background(), files)
	e := setEnded{files: t}
	written, unsure := errors.Is(err, checkpoint.ErrNotWritten), errors.Is(err, checkpoint.ErrIndeterminate)
	switch {
	case err == nil:
	case written == unsure:
		return fmt.Errorf("the error of Apply has not exactly one class: %w", err)
	case unsure:
		e.err = "unsure"
	default:
		e.err = "refused"
	}
	if err != nil && !s.faulty {
		return err
	}
	s.d.Note(e)
	now, _, err := readTree(s.d)
	if unsure || unread != nil || err != nil { // a fault kept the test from reading
		return nil
	}
	may := possibleTrees(s.d.Notes())
	if e.err == "refused" {
		may = append(may, before) // not recovered from what was before
	}
	if !slices.ContainsFunc(may, func(o tree) bool { return maps.Equal(now, o.withAllPaths()) }) {
		return fmt.Errorf("after Apply (%q) the files are\n\t%v, want one of\n\t%v", e.err, now, may)
	}
	return nil
}

// killInApply has a process end before one of its calls, in Apply or in the recovery before it. The disk
// stays.
func (s *setStory) killInApply(files []checkpoint.File, at func(call string) bool) {
	s.d.Note(setBegun{treeOf(files)})
	process := checkpoint.OnDisk{Before: func(call string) {
		if at(call) {
			runtime.Goexit()
		}
	}}
	over := make(chan struct{})
	go func() {
		defer close(over)
		if set, err := openSet(s.d, process, setOptions); err == nil {
			_ = set.Apply(context.Background(), files)
		}
	}()
	<-over
}

// writeAsStranger writes one file as a careful program does: durably, by a rename.
func (s *setStory) writeAsStranger(p string) error {
	s.count++
	content := fmt.Sprintf("stranger %d", s.count)
	files := tree{p: "644:" + content}
	temp := "/etc/stranger"
	f, err := s.d.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(content))
	if err := errors.Join(err, f.Sync(), f.Close(), syncPath(s.d, "/etc")); err != nil {
		return err
	}
	s.d.Note(strangerBegun{files})
	// Two directories: a crash may keep the file in both, and the one outside does not count.
	if err := errors.Join(s.d.Rename(temp, p), syncPath(s.d, path.Dir(p)), syncPath(s.d, "/etc")); err != nil {
		return err
	}
	s.d.Note(strangerEnded{files})
	return nil
}

func syncPath(d *checkpointtest.Disk, name string) error {
	f, err := d.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// tellEvent is one event of a story.
func (s *setStory) tellEvent() error {
	switch s.rnd.IntN(6) {
	case 0: // killed in the middle, and recovered by the next process
		s.killInApply(s.drawSet(), after(s.rnd.IntN(60)))
		return s.open()
	case 1: // killed, then another program writes, then recovered: its write stays
		files := s.drawSet()
		s.killInApply(files, after(s.rnd.IntN(60)))
		if err := s.writeAsStranger(setPaths[s.rnd.IntN(3)]); err != nil {
			return err
		}
		return s.open()
	case 2:
		return s.writeAsStranger(setPaths[s.rnd.IntN(3)])
	default:
		return s.apply(s.drawSet())
	}
}

func setHistory(seed uint64, steps int) func(*checkpointtest.Disk) error {
	return func(d *checkpointtest.Disk) error {
		s := &setStory{d: d, rnd: rand.New(rand.NewPCG(seed, 35))}
		if err := errors.Join(s.prepare(), s.open()); err != nil {
			return err
		}
		for range steps {
			if err := s.tellEvent(); err != nil {
				return err
			}
		}
		return nil
	}
}

// eventfulSet applies sets of each kind, with a killed process and a restart.
func (s *setStory) eventfulSet() error {
	if err := s.open(); err != nil {
		return err
	}
	for range 3 {
		if err := s.apply(s.drawSet()); err != nil {
			return err
		}
	}
	if err := s.open(); err != nil {
		return err
	}
	return s.apply(s.drawSet())
}
