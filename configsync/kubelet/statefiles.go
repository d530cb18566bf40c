// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/belayproject/belay/lkg"
)

// boundStream is the record about the files that bind a config.
const boundStream = "bound"

// unrecorded is the name of a file that says what the record could not be told: the values of a start that came
// after it.
const unrecorded = asideDir + "/unrecorded"

// RootDir returns the root directory that a kubelet is told by its command line, program first. It is the kubelet's
// default where the program is named kubelet and no flag names one, and empty where neither is so.
func RootDir(command []string) string {
	if len(command) == 0 {
		return ""
	}
	if dir, ok := flagValue(command[1:], "root-dir"); ok {
		return dir
	}
	if path.Base(command[0]) == "kubelet" {
		return defaultRootDir
	}
	return ""
}

// StateFiles keeps the state files that a kubelet has written under one config from stopping it under another. A
// kubelet that was started once with a static CPU manager, for example, refuses to start without it while its
// cpu_manager_state is there, so a rollback has to move that file aside. All fields may be zero. It has no state of
// its own; it must not be used while the kubelet runs or in two goroutines at a time.
type StateFiles struct {
	// RootDir is the kubelet's root directory, see [RootDir]. Empty or absent: there are no files.
	RootDir string
	// Flags are those of the kubelet: they overrule its config.
	Flags []string
	// Records keeps what was moved and why, in the stream "bound". nil: only what a file says of itself is known,
	// and no file returns.
	Records lkg.Store
	// Last are the last lines of the kubelet's run before this start, see [lkg.Exit]; empty where it did not end by
	// itself. If they say that it ended because of one of its state files, that file goes aside for good.
	Last []string
	// BootID identifies the boot. Empty means the kernel's. A file goes aside because of Last once in a boot, and never
	// without Records.
	BootID string
}

// Prepare makes the files ready for a start with a config, a KubeletConfiguration in YAML or JSON as the kubelet
// merges it. A file that the kubelet would refuse goes aside, and that of an earlier start under the same values
// returns. moved describes each move.
//
// The intent is on record before the first move, and the result after the last one: after a kill or a power cut at
// any moment, the next call finishes what was begun. Where records can't be written the files are moved all the
// same, and are not trusted to return. The error says that a file is in the way of the start that could not be
// moved, or that the config can't be read.
func (s StateFiles) Prepare(ctx context.Context, config []byte) (moved []string, err error) {
	if s.RootDir == "" {
		return nil, nil
	}
	want, err := readConfig(config, s.Flags)
	if err != nil {
		return nil, err
	}
	d, err := openDisk(s.RootDir)
	if err != nil {
		return nil, err
	}
	moves, err := prepareFiles(ctx, d, s.Records, want, s.lastEnd())
	for _, m := range moves {
		moved = append(moved, m.String())
	}
	return moved, errors.Join(err, d.closeRoot())
}

// lastEnd is what is known about the end of the kubelet before this start.
func (s StateFiles) lastEnd() kubeletEnd {
	if s.Records == nil || fileInTheWay(s.Last) == "" {
		return kubeletEnd{}
	}
	if s.BootID == "" {
		raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			return kubeletEnd{}
		}
		s.BootID = strings.TrimSpace(string(raw))
	}
	return kubeletEnd{s.Last, s.BootID}
}

func openDisk(dir string) (stateDisk, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return noDisk{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the kubelet's root directory: %w", err)
	}
	return rootDisk{root}, nil
}

// Drains returns the fields whose change from one config to another, in YAML or JSON as the kubelet merges them,
// leaves pods behind that were started under another state: they should leave the node before. Empty where there is
// no such field.
func (s StateFiles) Drains(from, to []byte) (fields []string, err error) {
	a, err := readConfig(from, s.Flags)
	if err != nil {
		return nil, err
	}
	b, err := readConfig(to, s.Flags)
	if err != nil {
		return nil, err
	}
	return drainedBy(a, b), nil
}

// prepareFiles finishes what an earlier call has begun, and then does what this start needs.
func prepareFiles(
	ctx context.Context, d stateDisk, records lkg.Store, want kubeletConfig, end kubeletEnd,
) ([]fileMove, error) {
	rec, unsure := readRecord(ctx, records)
	begun := rec.Intent != nil
	if begun {
		if err := moveFiles(d, rec.Intent.Moves); err != nil {
			return nil, err
		}
		rec = rec.Intent.Next
	}
	if records != nil && !unsure {
		if later, ok := readUnrecorded(d, rec.Epoch); ok {
			rec.Values, rec.Epoch, unsure = later.Values, later.Epoch, later.Values == nil
		}
	}
	rec.Number = max(rec.Number, lastNumber(d))
	files, err := lookAtFiles(d, rec.Aside)
	if err != nil {
		return nil, fmt.Errorf("looking at the kubelet's state files: %w", err)
	}
	plan := planMoves(rec, want, files, unsure)
	plan.moveInTheWay(end, files)
	plan.dropOldest()
	if len(plan.moves) == 0 && (records == nil || !begun && !unsure && plan.changesNothing(rec)) {
		return nil, nil
	}
	return plan.moves, plan.runPlan(ctx, d, records, rec)
}

// runPlan does what was planned. rec is the record so far.
func (p boundPlan) runPlan(ctx context.Context, d stateDisk, records lkg.Store, rec boundRecord) error {
	noted := false
	if len(p.moves) > 0 {
		rec.Intent = &boundIntent{Moves: p.moves, Next: p.next}
		if noted = putRecord(ctx, records, rec) == nil; !noted {
			// Nothing is known until the moves are done.
			writeUnrecorded(d, boundRecord{Epoch: p.next.Epoch, Newest: records == nil})
		}
		if err := moveFiles(d, p.moves); err != nil {
			return err
		}
	}
	switch err := putRecord(ctx, records, p.next); {
	case err == nil:
		_ = d.removeFile(unrecorded)   // else the older epoch says that it does not count
		_ = removeOld(d, p.next.Aside) // else the next call does it
	case !noted:
		writeUnrecorded(d, boundRecord{Epoch: p.next.Epoch, Values: p.next.Values, Newest: records == nil})
	}
	return nil // where the intent is on record, the next call finishes it
}

// writeUnrecorded notes on the kubelet's own disk what the record could not be told. Where that fails too, the
// kubelet can't write state either.
func writeUnrecorded(d stateDisk, rec boundRecord) {
	text, err := json.Marshal(rec)
	if err == nil && d.makeDir(asideDir) == nil {
		_ = d.writeFile(unrecorded, text)
	}
}

// readUnrecorded returns what the record of an epoch could not be told. Values is nil where that is not known.
func readUnrecorded(d stateDisk, epoch int) (rec boundRecord, ok bool) {
	text, err := d.readFile(unrecorded)
	if errors.Is(err, fs.ErrNotExist) {
		return rec, false
	}
	if err != nil || json.Unmarshal(text, &rec) != nil {
		return boundRecord{Epoch: epoch}, true
	}
	if rec.Newest { // from now on it has a place among the records
		rec.Newest, rec.Epoch = false, epoch+1
		writeUnrecorded(d, rec)
	}
	return rec, rec.Epoch > epoch
}

// readRecord returns the record. unsure is set where there is one that can't be read.
func readRecord(ctx context.Context, records lkg.Store) (rec boundRecord, unsure bool) {
	if records == nil {
		return rec, false
	}
	text, err := records.Get(ctx, boundStream)
	if errors.Is(err, fs.ErrNotExist) {
		return rec, false
	}
	if err != nil || json.Unmarshal(text, &rec) != nil {
		return boundRecord{}, true
	}
	return rec, false
}

var errNoRecords = errors.New("there are no records")

func putRecord(ctx context.Context, records lkg.Store, rec boundRecord) error {
	if records == nil {
		return errNoRecords
	}
	text, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return records.Put(ctx, boundStream, text)
}
