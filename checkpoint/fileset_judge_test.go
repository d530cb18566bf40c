// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/checkpoint/checkpointtest"
)

// What a FileSet promises across crashes, as a judge of any state. Notes say what was about to
// happen and what came of it.
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

func (t tree) mergedWith(files tree) tree {
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

// possibleTrees gives the trees that may be on the disk after these notes.
func possibleTrees(noted []any) []tree {
	may, flight := []tree{{}}, []tree(nil)
	settle := func() {
		may, flight = distinctTrees(slices.Concat(may, flight)), nil // a killed process: what it did may be there
	}
	each := func(files tree) (all []tree) {
		for _, t := range may {
			all = append(all, t.mergedWith(files))
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
	return distinctTrees(slices.Concat(may, flight))
}

func distinctTrees(trees []tree) (all []tree) {
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

// judgeSet makes the Check of every crash: the next process opens the set and finds one of the
// trees that may be there. What comes after recovery depends on nothing but what that left, so a
// second opening is looked at once. After an fsync that failed, the removal of a temporary file is
// in doubt for ever: with tidy false, one may be left.
func judgeSet(tidy bool) func(d *checkpointtest.Disk, noted []any) error {
	var mu sync.Mutex
	known := map[string]bool{}
	return func(d *checkpointtest.Disk, noted []any) error {
		got, err := recoverTree(d, possibleTrees(noted), tidy)
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
	if !slices.ContainsFunc(want, func(t tree) bool { return maps.Equal(got, t.withAllPaths()) }) {
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

// withAllPaths gives every path a value.
func (t tree) withAllPaths() tree {
	all := tree{}
	for _, p := range setPaths {
		all[p] = t[p]
	}
	return all
}
