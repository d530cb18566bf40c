// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"

	"github.com/belayproject/belay/lkg"
)

// A Codec turns an object into a typed config and the limits that travel with it.
type Codec[T any] interface {
	// Decode decodes the entry named key. It must be strict: an unknown field, kind or version is an error. It must be
	// deterministic, and must never panic or allocate without bound, whatever the bytes are. Limits that the object
	// doesn't carry are zero and take the Syncer's defaults. Errors name fields, never values.
	Decode(key string, o Object) (T, lkg.Limits, error)
}

// A Validator judges a decoded config before it is adopted and at each load. It must not keep or change cfg.
type Validator[T any] interface {
	// Validate returns nil, or an error that names the field and what would be right.
	Validate(ctx context.Context, cfg T) error
}

// A Probe says whether what is configured is well. Every probe must pass for a config to be promoted.
//
// Three methods more are optional. A Probe with NeedsServer() bool, if that is true, is asked during a trial, and
// after a rollback until the fallback has been healthy for a whole trial. So an idle node calls no server.
//
// A Probe with TakeBaseline(context.Context) ([]byte, error) and Compare(context.Context, []byte, bool) error
// compares with what was there before. TakeBaseline is called before each restart that puts the assigned config in the
// place of another one; all of them have 2 s. Its result, of at most 64 KiB, is kept in the Store until the config is
// promoted. Compare is called with it in place of Check; true means that another config than the assigned one is in
// use. Without a baseline, as where a server was away, or where a promoted config is left, Check is called.
type Probe interface {
	// Name identifies the probe in status and errors.
	Name() string
	// Check returns nil when all is well. It must end with ctx. An error that wraps [ErrUndecided] is no failure: the
	// probe could not find out anything, and the trial stands still unless another probe fails. One that wraps
	// [ErrBelow] is a failure of what every config needs.
	Check(ctx context.Context) error
}

// Change says why a restart is asked for.
type Change struct {
	// Kind is Adopt, Reset or RollBack.
	Kind changeKind
	// From and To are the configs before and after. The zero Ref is the local config.
	From, To lkg.Ref
	// Why is one sentence for people.
	Why string
}

// changeKind names the reason of a restart.
type changeKind string

// The kinds of change that ask for a restart.
const (
	// Adopt takes up a new config on trial.
	Adopt changeKind = "Adopt"
	// Reset returns to the local config because the source is empty.
	Reset changeKind = "Reset"
	// RollBack leaves a config that was rejected while it ran.
	RollBack changeKind = "RollBack"
)

// A Restarter restarts what is configured, after the change was recorded.
type Restarter interface {
	// Restart returns nil when a restart is under way or done, and the Syncer runs on. An error ends [Syncer.Run], which
	// returns it: so a Restarter that wants the process to exit returns an error that carries the exit code. No Restarter
	// exits.
	Restart(ctx context.Context, c Change) error
}

// A Reporter tells others the status. The Syncer calls it again, backing off, until it succeeds.
type Reporter interface {
	// Report makes s visible. It must be idempotent and end with ctx.
	Report(ctx context.Context, s Status) error
}

// A Store keeps what must survive. *checkpoint.Store satisfies it.
type Store interface {
	// Get returns the newest payload of a stream; absence is fs.ErrNotExist.
	Get(ctx context.Context, stream string) ([]byte, error)
	// Put makes payload the newest of its stream, durably. The same payload as the newest one is no write.
	Put(ctx context.Context, stream string, payload []byte) error
	// Delete removes a stream. Absence is no error.
	Delete(ctx context.Context, stream string) error
	// List returns the stream names in a directory; "" is the top.
	List(ctx context.Context, dir string) ([]string, error)
}
