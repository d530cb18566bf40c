// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"

	"github.com/belayproject/belay/internal/option"
)

// Names of methods, as [Call] has them.
const (
	create   = "Create"
	get      = "Get"
	list     = "List"
	remove   = "Delete"
	plan     = "Plan"
	update   = "Update"
	validate = "Validate"
	stop     = "Stop"
	reboot   = "Reboot"
	adopt    = "Adopt"
	capacity = "Capacity"
	console  = "Console"
	resize   = "Resize"
)

// around is what a decorator does about one call: it makes the call once or not at all, and returns its error or one of its own.
type around func(ctx context.Context, method string, call func(context.Context) error) error

// wrapped has every call of a provider go through a function, those of its abilities too. It is no Planner itself, nor any of the others: what it
// can do depends on what is inside, and Abilities says it.
type wrapped struct {
	inner  Provider
	around around
}

func (w wrapped) Create(ctx context.Context, r CreateRequest) (Instance, error) {
	return through(ctx, w.around, create, r, w.inner.Create)
}

func (w wrapped) Get(ctx context.Context, ref Ref) (Instance, error) {
	return through(ctx, w.around, get, ref, w.inner.Get)
}

func (w wrapped) List(ctx context.Context, s Scope) ([]Instance, error) {
	return through(ctx, w.around, list, s, w.inner.List)
}

func (w wrapped) Delete(ctx context.Context, r DeleteRequest) (Progress, error) {
	return through(ctx, w.around, remove, r, w.inner.Delete)
}

// Abilities are those of the inner provider, around each of which the same is done.
func (w wrapped) Abilities() Abilities { return wrapAbilities(AbilitiesOf(w.inner), w.around) }

// through makes a call with one argument.
func through[A, R any](ctx context.Context, w around, method string, arg A, call func(context.Context, A) (R, error)) (R, error) {
	var result R
	err := w(ctx, method, func(ctx context.Context) (err error) {
		result, err = call(ctx, arg)
		return err
	})
	return result, err
}

func wrapAbilities(inner Abilities, w around) Abilities {
	var (
		a    Abilities
		able = wrappedAbilities{inner, w}
	)
	if inner.Planner != nil {
		a.Planner = able
	}
	if inner.Updater != nil {
		a.Updater = able
	}
	if inner.Validator != nil {
		a.Validator = able
	}
	if inner.Power != nil {
		a.Power = able
	}
	if inner.Adopter != nil {
		a.Adopter = able
	}
	if inner.Capacity != nil {
		a.Capacity = able
	}
	if inner.Console != nil {
		a.Console = able
	}
	if inner.Group != nil {
		a.Group = able
	}
	return a
}

// wrappedAbilities has a method for each ability; only those that the inner provider has are ever called.
type wrappedAbilities struct {
	inner  Abilities
	around around
}

func (w wrappedAbilities) Plan(ctx context.Context, r UpdateRequest) (Plan, error) {
	return through(ctx, w.around, plan, r, w.inner.Planner.Plan)
}

func (w wrappedAbilities) Update(ctx context.Context, r UpdateRequest) (Progress, error) {
	return through(ctx, w.around, update, r, w.inner.Updater.Update)
}

func (w wrappedAbilities) Validate(ctx context.Context, d Desired) error {
	return w.around(ctx, validate, func(ctx context.Context) error { return w.inner.Validator.Validate(ctx, d) })
}

func (w wrappedAbilities) Stop(ctx context.Context, ref Ref) (Progress, error) {
	return through(ctx, w.around, stop, ref, w.inner.Power.Stop)
}

func (w wrappedAbilities) Reboot(ctx context.Context, ref Ref, id string) (Progress, error) {
	return through(ctx, w.around, reboot, ref, func(ctx context.Context, ref Ref) (Progress, error) {
		return w.inner.Power.Reboot(ctx, ref, id)
	})
}

func (w wrappedAbilities) Adopt(ctx context.Context, r AdoptRequest) (Instance, error) {
	return through(ctx, w.around, adopt, r, w.inner.Adopter.Adopt)
}

func (w wrappedAbilities) Capacity(ctx context.Context, d Desired) (map[string]string, error) {
	return through(ctx, w.around, capacity, d, w.inner.Capacity.Capacity)
}

func (w wrappedAbilities) Console(ctx context.Context, ref Ref, limit int) ([]byte, error) {
	return through(ctx, w.around, console, ref, func(ctx context.Context, ref Ref) ([]byte, error) {
		return w.inner.Console.Console(ctx, ref, limit)
	})
}

func (w wrappedAbilities) Resize(ctx context.Context, name string, size int, d Desired) error {
	return w.around(ctx, resize, func(ctx context.Context) error { return w.inner.Group.Resize(ctx, name, size, d) })
}

// absent stands for a nil provider in another one: each call says that it is missing. Package machine/controller
// refuses it.
type absent struct{}

func orAbsent(p Provider) Provider {
	if p == nil {
		return absent{}
	}
	return p
}

func (absent) missingError() error {
	return Errorf(Internal, "%w", option.CheckRequired("machine/provider", "p", nil, "the provider that is wrapped"))
}

// CheckInner says that a decorator was given no provider.
func (a absent) CheckInner() error { return a.missingError() }

// CheckInner returns an error if a decorator inside was given no provider.
func (w wrapped) CheckInner() error {
	if inner, ok := w.inner.(interface{ CheckInner() error }); ok {
		return inner.CheckInner()
	}
	return nil
}

func (a absent) Create(context.Context, CreateRequest) (Instance, error) {
	return Instance{}, a.missingError()
}

func (a absent) Delete(context.Context, DeleteRequest) (Progress, error) {
	return Progress{}, a.missingError()
}

func (a absent) Get(context.Context, Ref) (Instance, error) { return Instance{}, a.missingError() }

func (a absent) List(context.Context, Scope) ([]Instance, error) { return nil, a.missingError() }
