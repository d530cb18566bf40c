// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/belayproject/belay/configsync"
)

// A Bus is a connection to a systemd. *dbus.Conn of go-systemd satisfies it.
type Bus interface {
	RestartUnitContext(ctx context.Context, name, mode string, done chan<- string) (int, error)
	GetAllPropertiesContext(ctx context.Context, unit string) (map[string]any, error)
	GetUnitNameByPID(ctx context.Context, pid uint32) (string, error)
	Close()
}

// Dial connects to the machine's systemd: by the system bus or, for root where there is none, by systemd's own socket.
func Dial(ctx context.Context) (Bus, error) {
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to systemd: %w", err)
	}
	return conn, nil
}

// defaultTimeout is systemd's own for a start.
const defaultTimeout = 90 * time.Second

// Options of a [Unit]. The zero value is usable.
type Options struct {
	// Dial connects to systemd. Nil means [Dial].
	Dial func(ctx context.Context) (Bus, error)
	// Prepare, if not nil, is called before each restart. It is where a config is put in the place that the unit reads it from. Its error
	// is returned, and nothing is restarted.
	Prepare func(ctx context.Context, c configsync.Change) error
	// Timeout is how long a restart is waited for: 90 s for zero. One that takes longer is left to systemd, and is no error.
	Timeout time.Duration
}

// A Unit is a unit of systemd that takes up a config by being restarted. Make it with [New].
type Unit struct {
	name string
	o    Options
}

// New returns the unit of that name, such as kubelet.service. Nothing is connected yet. The error says what is wrong with the name or the options.
func New(name string, o Options) (*Unit, error) {
	if !strings.HasSuffix(name, ".service") || strings.ContainsAny(name, "/ *?[") {
		return nil, fmt.Errorf("systemd: unit %q: must be the name of a service, such as kubelet.service", name)
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("systemd: Options.Timeout is %s, must be positive, or 0 for %s", o.Timeout, defaultTimeout)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Dial == nil {
		o.Dial = Dial
	}
	return &Unit{name, o}, nil
}

// Own returns the unit that the calling process is part of. The error is systemd's where it is part of none.
func Own(ctx context.Context, o Options) (*Unit, error) {
	dial := o.Dial
	if dial == nil {
		dial = Dial
	}
	bus, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	defer bus.Close()
	name, err := bus.GetUnitNameByPID(ctx, uint32(os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("asking systemd for the own unit: %w", err)
	}
	return New(name, o)
}

// Restart implements configsync.Restarter. A unit that fails to come up again is no error: it was restarted, and its probes tell. A restart that
// systemd dropped for another job, or would not begin, is one.
func (u *Unit) Restart(ctx context.Context, c configsync.Change) error {
	if u.o.Prepare != nil {
		if err := u.o.Prepare(ctx, c); err != nil {
			return fmt.Errorf("preparing the restart of unit %q: %w", u.name, err)
		}
	}
	short, cancel := context.WithTimeout(ctx, u.o.Timeout)
	defer cancel()
	bus, err := u.o.Dial(short)
	if err != nil {
		return fmt.Errorf("restarting unit %q: %w", u.name, err)
	}
	defer bus.Close()
	done := make(chan string, 1)
	if _, err := bus.RestartUnitContext(short, u.name, "replace", done); err != nil {
		return fmt.Errorf("restarting unit %q: %w", u.name, err)
	}
	select {
	case result := <-done:
		return u.judge(result)
	case <-short.Done():
		return context.Cause(ctx) // nil: it takes longer than Timeout, and is under way
	}
}

// judge says what the result of a restart's job means.
func (u *Unit) judge(result string) error {
	switch result {
	case "done", "failed", "timeout":
		return nil
	default:
		return fmt.Errorf("restarting unit %q: systemd ended the job with %q", u.name, result)
	}
}

// Name implements configsync.Probe: it is the unit's.
func (u *Unit) Name() string { return u.name }

// ErrNotActive means that a unit does not run.
var ErrNotActive = errors.New("unit is not active")

// Check implements configsync.Probe: it returns nil while the unit is active. The error is [ErrNotActive] with the state that it is in, or
// trouble with the connection.
func (u *Unit) Check(ctx context.Context) error {
	p, err := u.properties(ctx)
	if err != nil {
		return err
	}
	if state := text(p, "ActiveState"); state != "active" {
		return fmt.Errorf("%w: it is %s (%s), result %s", ErrNotActive, state, text(p, "SubState"), text(p, "Result"))
	}
	return nil
}

// Policy asks systemd what it does when the unit's main process ends.
func (u *Unit) Policy(ctx context.Context) (Policy, error) {
	p, err := u.properties(ctx)
	if err != nil {
		return Policy{}, err
	}
	if state := text(p, "LoadState"); state != "loaded" {
		return Policy{}, fmt.Errorf("unit %q: systemd says that it is %s", u.name, state)
	}
	return policyOf(u.name, p), nil
}

func (u *Unit) properties(ctx context.Context) (map[string]any, error) {
	bus, err := u.o.Dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking about unit %q: %w", u.name, err)
	}
	defer bus.Close()
	p, err := bus.GetAllPropertiesContext(ctx, u.name)
	if err != nil {
		return nil, fmt.Errorf("asking about unit %q: %w", u.name, err)
	}
	return p, nil
}

func text(p map[string]any, name string) string {
	s, _ := p[name].(string)
	return s
}
