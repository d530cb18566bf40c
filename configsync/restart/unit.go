// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/lkg"
)

// The streams of a [Unit].
const (
	streamStart = "unit-start"
	streamStop  = "unit-stop"
	streamEnd   = "unit-end"
)

// A Unit is what the commands of one systemd unit leave for its next start, so that each start knows how the one
// before it ended:
//
//	ExecStartPre   [Guard]           counts the start and chooses the config; optional
//	ExecStart      [Unit.Last]       the main process: says how the last run ended
//	ExecStop       [Unit.Stopping]   the stop was asked for, if the main process still runs
//	ExecStopPost   [Unit.Ended]      how it ended
//
// Each of them is optional. Without Stopping, an end by `systemctl restart` looks like one that nobody planned, unless
// the main process has put a planned restart on record; without Ended, nothing is known about ends.
//
// A Unit has no state besides its Store, and may be copied. Make it with [OwnUnit].
type Unit struct {
	// Store keeps the notes. The commands of a unit have it open one after the other and only for a moment: it must not be
	// the Store of a Syncer that runs all the time.
	Store configsync.Store
	// Boot identifies the boot; what was noted in another one is left out. Empty: nothing is known to be of this boot.
	Boot string
	// Invocation is the invocation ID of the unit's present start.
	Invocation string
	// Supervises says that the main process runs what is configured as its child, as a [Supervisor] does. A bad end of the
	// main process is then an lkg.FaultSupervisor, and no crash of the config. Leave it false where the main process is
	// what is configured.
	Supervises bool
	// SinceBoot is a monotonic clock that all processes of the machine share. Nil means that no run has a known length.
	SinceBoot func() time.Duration
}

// OwnUnit is the unit that the calling process is part of: its boot ID and clock are the kernel's, its invocation ID is
// INVOCATION_ID of the environment, which systemd sets. Without that, as outside systemd, nothing is handed over by a
// [Guard].
func OwnUnit(store configsync.Store) (Unit, error) {
	if err := option.CheckRequired("configsync/restart.OwnUnit", "store", store, "see checkpoint.Open"); err != nil {
		return Unit{}, err
	}
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Unit{}, fmt.Errorf("restart: reading the boot ID: %w", err)
	}
	return Unit{Store: store, Boot: strings.TrimSpace(string(raw)), Invocation: os.Getenv("INVOCATION_ID"), SinceBoot: sinceBoot}, nil
}

// startNote is what a start leaves.
type startNote struct {
	Boot       string        `json:"boot"`
	Invocation string        `json:"invocation"`
	At         time.Duration `json:"at,omitempty"`      // of SinceBoot
	Counted    bool          `json:"counted,omitempty"` // by a guard, for the main process of the same invocation
}

// stopNote says that a stop was asked for.
type stopNote struct {
	Boot       string `json:"boot"`
	Invocation string `json:"invocation"`
}

// endNote is how a run ended.
type endNote struct {
	End
	Boot  string        `json:"boot"`
	Asked bool          `json:"asked,omitempty"`
	Ran   time.Duration `json:"ran,omitempty"`
}

// Stopping notes that systemd stops the unit because it was asked to. Call it from an ExecStop command, and only where
// MAINPID is set: systemd also runs that command after a main process that has ended by itself, and then sets none.
func (u Unit) Stopping(ctx context.Context) error {
	return u.put(ctx, streamStop, stopNote{u.Boot, u.Invocation})
}

// Ended notes how the main process ended. Call it from an ExecStopPost command. A note that was not consumed is
// replaced.
func (u Unit) Ended(ctx context.Context, e End) error {
	var start startNote
	var stop stopNote
	err := errors.Join(u.get(ctx, streamStart, &start), u.get(ctx, streamStop, &stop))
	n := endNote{End: e, Boot: u.Boot, Asked: u.own(stop.Boot, stop.Invocation)}
	if u.own(start.Boot, start.Invocation) && start.At > 0 && u.SinceBoot != nil {
		n.Ran = max(u.SinceBoot()-start.At, 0)
	}
	return errors.Join(err, u.put(ctx, streamEnd, n))
}

// Last says how the run before this start ended, once, and notes the start. Where a [Guard] of the same invocation has
// counted this start already, it is [lkg.ExitCounted], so that no start counts, or is on record, twice.
//
// An error is for the log, and no reason not to start: the Exit is valid beside it, and says no more than is known.
// What can't be removed from the Store is not used, so that nothing explains two starts. A kill in between loses the
// explanation, no more.
func (u Unit) Last(ctx context.Context) (lkg.Exit, error) {
	var start startNote
	startErr := u.get(ctx, streamStart, &start)
	counted := start.Counted && u.own(start.Boot, start.Invocation)
	now := startNote{Boot: u.Boot, Invocation: u.Invocation, At: start.At}
	if !counted && u.SinceBoot != nil {
		now.At = u.SinceBoot()
	}
	putErr := u.put(ctx, streamStart, now)
	if counted && putErr == nil {
		return lkg.Exit{Kind: lkg.ExitCounted, Detail: "this start was counted before the main process began"}, nil
	}
	exit, err := u.takeEnd(ctx)
	return exit, errors.Join(startErr, putErr, err)
}

// takeEnd consumes the note of the last end.
func (u Unit) takeEnd(ctx context.Context) (lkg.Exit, error) {
	if err := u.isMade(); err != nil {
		return lkg.Exit{}, err
	}
	var end endNote
	err := u.get(ctx, streamEnd, &end)
	if err == nil && end.Boot == "" {
		return lkg.Exit{}, nil
	}
	if err := errors.Join(err, u.Store.Delete(ctx, streamEnd)); err != nil {
		return lkg.Exit{}, fmt.Errorf("consuming %q: %w", streamEnd, err)
	}
	if end.Boot != u.Boot {
		return lkg.Exit{}, nil // of another boot: that the machine was started anew explains more
	}
	if u.Supervises {
		return end.ofSupervisor(end.Asked, end.Ran), nil
	}
	return end.exit(end.Asked, end.Ran), nil
}

// counted notes that the present start is on record, for the main process that follows.
func (u Unit) counted(ctx context.Context) error {
	if u.Invocation == "" || u.Boot == "" {
		return nil
	}
	n := startNote{Boot: u.Boot, Invocation: u.Invocation, Counted: true}
	if u.SinceBoot != nil {
		n.At = u.SinceBoot()
	}
	return u.put(ctx, streamStart, n)
}

// own reports whether a note is of the present invocation.
func (u Unit) own(boot, invocation string) bool {
	return boot != "" && invocation != "" && boot == u.Boot && invocation == u.Invocation
}

func (u Unit) isMade() error {
	return option.CheckRequired("configsync/restart.Unit", "Unit.Store", u.Store, "see OwnUnit")
}

// get reads a note; one that is absent leaves v as it is.
func (u Unit) get(ctx context.Context, stream string, v any) error {
	if err := u.isMade(); err != nil {
		return err
	}
	raw, err := u.Store.Get(ctx, stream)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		return fmt.Errorf("reading %q: %w", stream, err)
	}
	return nil
}

func (u Unit) put(ctx context.Context, stream string, v any) error {
	if err := u.isMade(); err != nil {
		return err
	}
	raw, err := json.Marshal(v)
	if err == nil {
		err = u.Store.Put(ctx, stream, raw)
	}
	if err != nil {
		return fmt.Errorf("noting %q: %w", stream, err)
	}
	return nil
}
