// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/checkpoint/checkpointtest"
	"github.com/belayproject/belay/internal/raceshare"
)

// What a FileSet promises across crashes, as a judge of any state. Notes say what was about to happen and what came of it.
type (
	setBegun struct{ files tree }
	setEnded struct {
		files tree
		err   string // "" = acknowledged, "unsure", "refused"
	}
	// strangerBegun and strangerEnded are the write of one file by another program, which is durable when it ended.
	strangerBegun struct{ files tree }
	strangerEnded struct{ files tree }
	// treeSeen is what a process read after recovery: the next crash must not take it back.
	treeSeen struct{ files tree }
)

// tree says of each path what is there: the mode and the content, or "" for nothing.
type tree map[string]string

func (t tree) with(files tree) tree {
	all := maps.Clone(t)
	maps.Copy(all, files)
	return all
}

func (t tree) String() string {
	var lines []string
	for _, p := range slices.Sorted(maps.Keys(t)) {
		lines = append(lines, p+"="+t[p])
	}
	return strings.Join(lines, " ")
}

const (
	setHome = "/lib/agent/set"
	netDir  = "/etc/net"
	tlsDir  = "/etc/tls/new" // not there at first, nor is the one above
)

var setPaths = []string{netDir + "/a.conf", netDir + "/b.conf", netDir + "/c.conf", tlsDir + "/cert", tlsDir + "/key"}

var setOptions = checkpoint.Options{MachineID: "a machine", Generations: 2, Ballast: -1}

func openSet(d *checkpointtest.Disk, how checkpoint.OnDisk, o checkpoint.Options) (*checkpoint.FileSet, error) {
	return checkpoint.OpenFileSetOnDisk(d, how, setHome, o)
}

// possible gives the trees that may be on the disk after these notes.
func possible(noted []any) []tree {
	may, flight := []tree{{}}, []tree(nil)
	settle := func() {
		may, flight = distinct(slices.Concat(may, flight)), nil // a killed process: what it did may be there
	}
	each := func(files tree) (all []tree) {
		for _, t := range may {
			all = append(all, t.with(files))
		}
		return all
	}
	for _, n := range noted {
		switch n := n.(type) {
		case setBegun:
			settle()
			flight = each(n.files)
		case strangerBegun:
			settle()
			flight = each(n.files)
		case setEnded:
			switch n.err {
			case "":
				may = flight
			case "unsure":
				may = slices.Concat(may, flight)
			}
			flight = nil
		case strangerEnded:
			may, flight = flight, nil
		case treeSeen:
			may, flight = []tree{n.files}, nil
		}
	}
	return distinct(slices.Concat(may, flight))
}

func distinct(trees []tree) (all []tree) {
	for _, t := range trees {
		if !slices.ContainsFunc(all, func(o tree) bool { return maps.Equal(t, o) }) {
			all = append(all, t)
		}
	}
	return all
}

// readTree reads every path, and names a file that is left beside them.
func readTree(d *checkpointtest.Disk) (all tree, left string, err error) {
	all = tree{}
	for _, p := range setPaths {
		if all[p], err = readValue(d, p); err != nil {
			return nil, "", err
		}
	}
	for _, dir := range []string{netDir, tlsDir} {
		entries, err := d.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, "", err
		}
		for _, e := range entries {
			if p := path.Join(dir, e.Name()); !slices.Contains(setPaths, p) {
				left = p
			}
		}
	}
	return all, left, nil
}

// readValue gives the mode and the content of a file, or "" for none.
func readValue(d *checkpointtest.Disk, p string) (string, error) {
	f, err := d.OpenFile(p, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(f)
	return fmt.Sprintf("%o:%s", info.Mode().Perm(), data), errors.Join(err, f.Close())
}

// judgeSet makes the Check of every crash: the next process opens the set and finds one of the trees that may be there. What comes
// after recovery depends on nothing but what that left, so a second opening is looked at once. After an fsync that failed, the
// removal of a temporary file is in doubt for ever: with tidy false, one may be left.
func judgeSet(tidy bool) func(d *checkpointtest.Disk, noted []any) error {
	var mu sync.Mutex
	known := map[string]bool{}
	return func(d *checkpointtest.Disk, noted []any) error {
		got, err := recoverTree(d, possible(noted), tidy)
		if err != nil {
			return err
		}
		d.Note(treeSeen{got})
		d.Stop()
		left, err := homeOf(d)
		if err != nil {
			return err
		}
		left += got.String()
		mu.Lock()
		was := known[left]
		known[left] = true
		mu.Unlock()
		if was {
			return nil
		}
		_, err = recoverTree(d, []tree{got}, tidy)
		return err
	}
}

func recoverTree(d *checkpointtest.Disk, want []tree, tidy bool) (tree, error) {
	if _, err := openSet(d, checkpoint.OnDisk{}, setOptions); err != nil {
		return nil, fmt.Errorf("OpenFileSet: %w", err)
	}
	got, left, err := readTree(d)
	if err != nil {
		return nil, err
	}
	if tidy && left != "" {
		return nil, fmt.Errorf("a temporary file is left: %s", left)
	}
	if !slices.ContainsFunc(want, func(t tree) bool { return maps.Equal(got, t.complete()) }) {
		return nil, fmt.Errorf("the files are\n\t%v, want one of\n\t%v", got, want)
	}
	return got, nil
}

// homeOf gives all that is in the directory of the journal.
func homeOf(d *checkpointtest.Disk) (string, error) {
	entries, err := d.ReadDir(setHome)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, e := range entries {
		f, err := d.OpenFile(path.Join(setHome, e.Name()), os.O_RDONLY, 0)
		if err != nil {
			return "", err
		}
		data, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", err
		}
		fmt.Fprintf(&all, "%s=%s;", e.Name(), data)
	}
	return all.String(), nil
}

// complete gives every path a value.
func (t tree) complete() tree {
	all := tree{}
	for _, p := range setPaths {
		all[p] = t[p]
	}
	return all
}

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

// draw makes a set of two to four files: new contents, with modes, and files that are to go.
func (s *setStory) draw() []checkpoint.File {
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

// open opens the set. Where a fault keeps it from that, the process is started again, as often as may be.
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
	may := possible(s.d.Notes())
	if e.err == "refused" {
		may = append(may, before) // not recovered from what was before
	}
	if !slices.ContainsFunc(may, func(o tree) bool { return maps.Equal(now, o.complete()) }) {
		return fmt.Errorf("after Apply (%q) the files are\n\t%v, want one of\n\t%v", e.err, now, may)
	}
	return nil
}

// die has a process end before one of its calls, in Apply or in the recovery before it. The disk stays.
func (s *setStory) die(files []checkpoint.File, at func(call string) bool) {
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

// stranger writes one file as a careful program does: durably, by a rename.
func (s *setStory) stranger(p string) error {
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
	// Two directories: a crash may keep the file in both, and the one outside is nobody's business.
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

// step is one event of a story.
func (s *setStory) step() error {
	switch s.rnd.IntN(6) {
	case 0: // killed in the middle, and recovered by the next process
		s.die(s.draw(), after(s.rnd.IntN(60)))
		return s.open()
	case 1: // killed, then another program writes, then recovered: its write stays
		files := s.draw()
		s.die(files, after(s.rnd.IntN(60)))
		if err := s.stranger(setPaths[s.rnd.IntN(3)]); err != nil {
			return err
		}
		return s.open()
	case 2:
		return s.stranger(setPaths[s.rnd.IntN(3)])
	default:
		return s.apply(s.draw())
	}
}

func setHistory(seed uint64, steps int) func(*checkpointtest.Disk) error {
	return func(d *checkpointtest.Disk) error {
		s := &setStory{d: d, rnd: rand.New(rand.NewPCG(seed, 35))}
		if err := errors.Join(s.prepare(), s.open()); err != nil {
			return err
		}
		for range steps {
			if err := s.step(); err != nil {
				return err
			}
		}
		return nil
	}
}

// D1 for a FileSet: a crash between any two calls of the disk, with any part of what was not synced, while sets are applied, while
// processes are killed in the middle, and while other programs write the same files. Each state is whole or undone.
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
		return checkpointtest.Crash{Work: setHistory(seed, 1+int(seed%2)), Check: judgeSet(true), Seed: seed, Depth: 3, PerPoint: 64}
	})
	line(t, "D4.FileSet", "states", total.Nested, bar, fmt.Sprintf("depth=3 recoveries=%d ", total.Checked))
}

// eventfulSet applies sets of each kind, with a killed process and a restart.
func (s *setStory) eventfulSet() error {
	if err := s.open(); err != nil {
		return err
	}
	for range 3 {
		if err := s.apply(s.draw()); err != nil {
			return err
		}
	}
	if err := s.open(); err != nil {
		return err
	}
	return s.apply(s.draw())
}

// D5 for a FileSet: every call of the disk fails, in every way. An error says what happened; the next process finds a whole set.
func TestFaultD5FileSetEveryCallFails(t *testing.T) {
	runs := 0
	for _, f := range checkpointtest.Faults() {
		for f.At = 0; ; f.At += amount(29, 1, 1) {
			d := checkpointtest.NewDisk()
			s := &setStory{d: d, rnd: rand.New(rand.NewPCG(5, 35)), faulty: true}
			if err := errors.Join(s.prepare(), s.open(), s.apply(s.draw())); err != nil {
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
	line(t, "D5.FileSet", "runs", runs, amount(200, 2000, 2000), fmt.Sprintf("kinds=%d ", len(checkpointtest.Faults())))
}

// D6 for a FileSet: an fsync or a rename fails once; what it should have made durable is lost, and later ones succeed.
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
					if err := errors.Join(s.prepare(), s.open(), s.apply(s.draw())); err != nil {
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
	line(t, "D6.FileSet", "faults", points, amount(raceshare.Of(t, 20), 150, 150), fmt.Sprintf("model=memory states=%d ", total.States))
}
