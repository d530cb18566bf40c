// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/lkg"
)

// Options are the parts of a [Syncer]. A zero duration means the default that its comment names.
type Options[T any] struct {
	// Version is the version of the agent. Beliefs about configs are kept apart per version. Required.
	Version string
	// Key is the entry of an object that holds the config where the Spec names none. Required.
	Key string
	// Node is the name of the node, which is the key of [Syncer.Reconcile]. Empty means that it takes every key.
	Node string
	// Codec decodes objects. Required.
	Codec Codec[T]
	// Validators judge every decoded config, the local one included.
	Validators []Validator[T]
	// Inspectors judge every object of the source before it is decoded, when it was fetched and at each load from the
	// Store: its signature, say. The local config is not theirs.
	Inspectors []Inspector
	// Changes judges what a config would change, against the last known good one, before it is adopted and until it has
	// passed its trial. Nil permits everything. The way to the local config, and back to the last known good one, is not
	// asked for.
	Changes ChangePolicy
	// Proofs judge an object after all else, until it has passed its trial: a trial run of the program, say. They are
	// asked again at each start, and are to remember what they said. One with a method Recall(lkg.Getter) Inspector
	// is asked by [Explain] for what it remembers, alone. One with a method ForEachBinary() bool that returns true is
	// also asked, at each start, about the last known good config and the one before it: a refusal has them left, and
	// no answer does not. configsync/kubelet has one.
	Proofs []Inspector

	// Init returns the init config that the node was provisioned with; fs.ErrNotExist means that there is none. Nil is the
	// same. It is read, decoded and validated at every start.
	Init func(ctx context.Context) (Object, error)
	// Default returns the built-in config, used where there is no init config. Nil means that an init config is required.
	Default func() T

	// Store keeps the state. Nil together with a nil Source switches dynamic config off: nothing is read, written or
	// watched.
	Store Store
	// Source says which config is wanted. Nil means that only what is on disk and the local config are used.
	Source Source
	// Fetcher gets what Source names. Required with Source.
	Fetcher Fetcher
	// Restarter restarts what is configured. Required with Source. The error of one that is also a [Probe], as a
	// Supervisor is, comes to stand in the condition while nothing runs, so its text must stay the same as long as the
	// cause does. An error with a method Ended() bool that returns true says that what ran has ended on its own.
	Restarter Restarter
	// Reporter is told each new status. Nil means that no status is reported.
	Reporter Reporter
	// BeforeRestart is called after a change was recorded and before the restart that it asks for, with the status of
	// that moment, so that what happened can be told before the process may end. The restart waits for it, so it must
	// be short, and end with its context, which has 2 s. Nil means nothing is to be done.
	BeforeRestart func(ctx context.Context, now Status, c Change)
	// Probes must all pass, for as long as the trial asks, before a config is promoted, and are asked for as long as
	// a config is in use: a config is left when a probe fails for longer than its lkg.Limits allow. A Restarter that
	// is a Probe, as a Supervisor is, is among them. One that is made by [Wanted] is shown, and need not pass. While
	// an error wraps [ErrBelow] or [ErrUndecided], the time counts neither for the config nor against it.
	Probes []Probe
	// Ack, if not nil, has every config on trial wait for a word from outside.
	Ack *Ack

	// Bounds are the operator's limits on the limits that travel with a config.
	Bounds lkg.Bounds
	// Policy says what a start does when the wanted config could not be found out.
	Policy lkg.Policy
	// Binary identifies the program that is configured, for example by its digest: see lkg.Options. Nil means that a
	// config which was rejected is so for each program.
	Binary func() string
	// BootID identifies the boot. Empty means the kernel's.
	BootID string
	// Now is the wall clock for what is written down for people. Nil means time.Now. Nothing is decided by it.
	Now func() time.Time

	// CallTimeout bounds each call of Source, Fetcher and Reporter: 10 s.
	CallTimeout time.Duration
	// ProbeInterval is the time between rounds of probes: 10 s. ProbeTimeout bounds each probe: 5 s.
	ProbeInterval, ProbeTimeout time.Duration
	// RetryMin and RetryMax bound the backoff after trouble: 1 s and 2 min.
	RetryMin, RetryMax time.Duration
	// Resync is how often the source is read and the status reported although nothing has changed, in case that a watch is
	// dead or a report was lost: 10 min. Reporters write differences only.
	Resync time.Duration
	// FollowJitter is the longest random delay before an edit made in place is adopted under [Follow]: 5 min.
	// Negative means none.
	FollowJitter time.Duration
}

// Active is the config that a start must use.
type Active[T any] struct {
	// Config is the decoded config. Its owner is the caller.
	Config T
	// Object is what Config was decoded from; zero for built-in defaults.
	Object Object
	// Key is the entry of Object that holds the config.
	Key string
	// Ref names the config; the zero Ref is the local one.
	Ref lkg.Ref
	// Verdict says why it is this one.
	Verdict lkg.Verdict
}

// withDefaults returns a copy of o in which every optional value is set, or an error that names the missing part.
func (o Options[T]) withDefaults() (Options[T], error) {
	if err := o.check(); err != nil {
		return o, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.BootID == "" {
		raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			return o, fmt.Errorf("reading the boot ID: %w; set Options.BootID where the kernel gives none", err)
		}
		o.BootID = strings.TrimSpace(string(raw))
	}
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&o.CallTimeout, 10 * time.Second},
		{&o.ProbeInterval, 10 * time.Second},
		{&o.ProbeTimeout, 5 * time.Second},
		{&o.RetryMin, time.Second},
		{&o.RetryMax, 2 * time.Minute},
		{&o.FollowJitter, 5 * time.Minute},
		{&o.Resync, 10 * time.Minute},
	} {
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	return o, nil
}

// check returns one error that names every required part that is missing.
func (o Options[T]) check() error {
	check := option.For("configsync.New", nil)
	check.Require("Options.Version", o.Version, "that of the agent")
	check.Require("Options.Key", o.Key, "the entry of an object that holds the config")
	check.Require("Options.Codec", o.Codec, "see YAML")
	if err := o.Ack.check(); err != nil {
		check.Wrong("%v", err)
	}
	if o.Init == nil && o.Default == nil {
		check.Require("Options.Init or Options.Default", nil, "without a local config there is nothing to fall back to")
	}
	if o.Source != nil {
		check.Require("Options.Store", o.Store, "with Source; see checkpoint.Open")
		check.Require("Options.Fetcher", o.Fetcher, "with Source")
		check.Require("Options.Restarter", o.Restarter, "with Source; see package restart")
	}
	for field, d := range map[string]time.Duration{
		"CallTimeout": o.CallTimeout, "ProbeInterval": o.ProbeInterval, "ProbeTimeout": o.ProbeTimeout,
		"RetryMin": o.RetryMin, "RetryMax": o.RetryMax, "Resync": o.Resync,
	} {
		if d < 0 {
			check.Wrong("Options.%s must be positive, or 0 for the default, got %s", field, d)
		}
	}
	return check.Err()
}

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
