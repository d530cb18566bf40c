// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/renameio/v2"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/internal/tier"
)

// setSubjects keep a value in three files of two directories, which must agree: a FileSet, and two
// ways in which node agents write such files, one after the other.
func setSubjects() []subject {
	return []subject{
		{name: "FileSet", deletes: true, prepare: prepareSets, open: openSets},
		oneByOne("renameio.each", func(path string, data []byte) error { return renameio.WriteFile(path, data, 0o600) }),
		oneByOne("os.WriteFile.each", func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }),
	}
}

func oneByOne(name string, write func(path string, data []byte) error) subject {
	return subject{
		name: name, prepare: prepareSets,
		open: func(dir string) (keeper, error) { return &setKeeper{dir: dir, write: write}, nil },
	}
}

// prepareSets makes the directories, durably: only the files are on trial.
func prepareSets(dir string) error {
	return errors.Join(os.MkdirAll(filepath.Join(dir, "two"), 0o700), prepareFiles(dir))
}

type setKeeper struct {
	dir   string
	sets  map[string]*checkpoint.FileSet
	write func(path string, data []byte) error // for those without sets
}

func openSets(dir string) (keeper, error) {
	k := &setKeeper{dir: dir, sets: map[string]*checkpoint.FileSet{}}
	for _, stream := range streams {
		o := options()
		o.Ballast = -1
		var damage []error
		o.OnDamage = func(d checkpoint.Damage) { damage = append(damage, &d) }
		set, err := checkpoint.OpenFileSet(context.Background(), filepath.Join(dir, "sets-"+flat(stream)), o)
		if err = errors.Join(append(damage, err)...); err != nil {
			return nil, err
		}
		k.sets[stream] = set
	}
	return k, nil
}

func flat(stream string) string { return strings.ReplaceAll(stream, "/", "-") }

func (k *setKeeper) paths(stream string) []string {
	name := flat(stream)
	d := filepath.Join(k.dir, "d", name)
	return []string{d + ".1", d + ".2", filepath.Join(k.dir, "two", name+".3")}
}

func (k *setKeeper) put(ctx context.Context, stream string, v value) error {
	var files []checkpoint.File
	for _, path := range k.paths(stream) {
		f := checkpoint.File{Path: path, Absent: v == 0}
		if !f.Absent {
			f.Content = payload(stream, v)
		}
		files = append(files, f)
	}
	if k.sets != nil {
		return k.sets[stream].Apply(ctx, files)
	}
	for _, f := range files {
		if err := errors.Join(ctx.Err(), k.write(f.Path, f.Content)); err != nil {
			return err
		}
	}
	return nil
}

// look reads all files of a stream. Those of which one is old and one is new are nothing that was
// put.
func (k *setKeeper) look(stream string) (value, uint64, error) {
	var all []value
	for _, path := range k.paths(stream) {
		text, err := os.ReadFile(path)
		v := value(0)
		if err == nil {
			v, err = valueOf(stream, text)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, 0, err
		}
		all = append(all, v)
	}
	for _, v := range all {
		if v != all[0] {
			return 0, 0, fmt.Errorf("%sfiles of different sets: %d", tornPrefix, all)
		}
	}
	return all[0], 0, nil
}

func (k *setKeeper) close() error { return nil }

// D2, D4 for sets: the power is cut while six sets of three files are applied at once, and again
// while they recover. A FileSet loses and mixes nothing; the harness finds what those lose and mix
// that write one file after the other.
func TestPowerCutsOfSets(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	eachKind(t, []kind{ext4, xfs}, func(t *testing.T, k kind) {
		for _, s := range setSubjects() {
			ours := s.name == "FileSet"
			cycles, depth := figure(4, 20, 400), 0
			if ours {
				cycles, depth = figure(8, 100, 5000), 2
			}
			var sum tally
			for seed := range seeds(t) {
				one := powerCase{kind: k, subject: s, seed: seed, depth: depth}.run(t, min(round, cycles))
				sum.add(one)
				for _, broken := range one.broken {
					if ours {
						t.Errorf("%s\n\t%s", broken, howTo(t, seed))
					}
				}
				if t.Failed() || sum.cycles >= cycles && (ours || sum.lossy > 0) || sum.cycles >= 10*cycles {
					break
				}
			}
			rest := fmt.Sprintf("recoveries-cut=%d acknowledged=%d lossy=%d mixed=%d",
				sum.nested, sum.acknowledged, sum.lossy, sum.torn)
			report(t, "D2."+k.name+"."+s.name, "cycles", sum.cycles, cycles, rest, ours == (sum.lossy == 0))
		}
	})
}

// D3 for sets: the disk is brought to every point of its history, with writes lost and torn.
func TestBlocksOfSets(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	eachKind(t, []kind{ext4, xfs, btrfs}, func(t *testing.T, k kind) {
		for _, s := range setSubjects() {
			ours := s.name == "FileSet"
			bar := figure(20, 50, 1000)
			if ours {
				bar = figure(20, 150, 10000)
			}
			var sum replayed
			for seed := range seeds(t) {
				record(t, k, s, seed, 2).replay(t, bar, &sum)
				if states := sum.prefixes + sum.torn; states >= bar && (ours || sum.lossy > 0) || states >= 10*bar {
					break
				}
			}
			if ours {
				for _, broken := range sum.broken {
					t.Error(broken)
				}
			}
			rest := fmt.Sprintf("lossy=%d mixed=%d", sum.lossy, sum.unwhole)
			report(t, "D3."+k.name+"."+s.name, "states", sum.prefixes+sum.torn, bar, rest, ours == (sum.lossy == 0))
		}
	})
}
