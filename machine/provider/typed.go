// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"reflect"

	"github.com/belayproject/belay/internal/strictjson"
)

// Kind is what a config says that it is. A config type has these fields at its top; embedding Kind is one way.
type Kind struct {
	// APIVersion is as "acme.dev/v1".
	APIVersion string `json:"apiVersion"`
	// Kind is as "AcmeMachine".
	Kind string `json:"kind"`
}

// A TypedProvider is a [Provider] that is given its config decoded. See [Typed].
type TypedProvider[C any] interface {
	// Create is as in [Provider], with the config of r.Desired.
	Create(ctx context.Context, r CreateRequest, config C) (Instance, error)
	// Get is as in [Provider].
	Get(ctx context.Context, ref Ref) (Instance, error)
	// List is as in [Provider].
	List(ctx context.Context, s Scope) ([]Instance, error)
	// Delete is as in [Provider].
	Delete(ctx context.Context, r DeleteRequest) (Progress, error)
}

// A typedPlanner is a [Planner] that is given its config decoded.
type typedPlanner[C any] interface {
	// Plan is as in [Planner].
	Plan(ctx context.Context, r UpdateRequest, config C) (Plan, error)
}

// A typedUpdater is an [Updater] that is given its config decoded.
type typedUpdater[C any] interface {
	// Update is as in [Updater].
	Update(ctx context.Context, r UpdateRequest, config C) (Progress, error)
}

// A typedValidator is a [Validator] that is given its config decoded.
type typedValidator[C any] interface {
	// Validate is as in [Validator]. It is asked after the config's own Validate.
	Validate(ctx context.Context, d Desired, config C) error
}

// A typedAdopter is an [Adopter] that is given its config decoded.
type typedAdopter[C any] interface {
	// Adopt is as in [Adopter], with the config of r.As.Desired.
	Adopt(ctx context.Context, r AdoptRequest, config C) (Instance, error)
}

// A typedCapacity is a [Capacity] that is given its config decoded.
type typedCapacity[C any] interface {
	// Capacity is as in [Capacity].
	Capacity(ctx context.Context, d Desired, config C) (map[string]string, error)
}

// A typedGroup is a [Group] that is given its config decoded.
type typedGroup[C any] interface {
	// Resize is as in [Group].
	Resize(ctx context.Context, name string, size int, d Desired, config C) error
}

// Typed makes a provider of one that has a config type. [Desired.Config] is decoded into a C before every call that has one, and nothing is called if
// that fails: an empty config, another kind or version, a field that C doesn't have (or has in another case), a field that stands twice, a value that
// doesn't fit, and what follows the document are [InvalidConfig]. The error names the field's path, the form of what is there and what would be right,
// and no value but of apiVersion and kind.
//
// If *C has a method Default(), it is called after that, and then Validate() error, whose error is InvalidConfig. Delete, Get, List and the abilities
// [Power] and [Console] never look at a config. The other abilities are found by assertion in their typed form ([typedPlanner] and so on);
// [Validator] is always there.
func Typed[C any](kind Kind, p TypedProvider[C]) Provider {
	if p == nil {
		return absent{}
	}
	return typed[C]{p, decoder[C]{kind: kind, complete: strictjson.HasFields(reflect.TypeFor[C](), "apiVersion", "kind")}}
}

type typed[C any] struct {
	inner  TypedProvider[C]
	config decoder[C]
}

func (t typed[C]) Create(ctx context.Context, r CreateRequest) (Instance, error) {
	c, err := t.config.decode("create instance", r.Token, r.Desired)
	if err != nil {
		return Instance{}, err
	}
	return t.inner.Create(ctx, r, c)
}

func (t typed[C]) Get(ctx context.Context, ref Ref) (Instance, error) { return t.inner.Get(ctx, ref) }

func (t typed[C]) List(ctx context.Context, s Scope) ([]Instance, error) { return t.inner.List(ctx, s) }

func (t typed[C]) Delete(ctx context.Context, r DeleteRequest) (Progress, error) {
	return t.inner.Delete(ctx, r)
}

// Abilities are those of the inner provider, and Validator.
func (t typed[C]) Abilities() Abilities {
	able := typedAbilities[C](t)
	a := Abilities{Validator: able}
	if _, ok := t.inner.(typedPlanner[C]); ok {
		a.Planner = able
	}
	if _, ok := t.inner.(typedUpdater[C]); ok {
		a.Updater = able
	}
	if _, ok := t.inner.(typedAdopter[C]); ok {
		a.Adopter = able
	}
	if _, ok := t.inner.(typedCapacity[C]); ok {
		a.Capacity = able
	}
	if _, ok := t.inner.(typedGroup[C]); ok {
		a.Group = able
	}
	a.Power, _ = t.inner.(Power)
	a.Console, _ = t.inner.(Console)
	return a
}

// typedAbilities has a method for each ability; only those that the inner provider has are ever called.
type typedAbilities[C any] typed[C]

func (t typedAbilities[C]) Plan(ctx context.Context, r UpdateRequest) (Plan, error) {
	c, err := t.config.decode("plan instance", r.Ref.Token, r.Desired)
	if err != nil {
		return Plan{}, err
	}
	return t.inner.(typedPlanner[C]).Plan(ctx, r, c)
}

func (t typedAbilities[C]) Update(ctx context.Context, r UpdateRequest) (Progress, error) {
	c, err := t.config.decode("update instance", r.Ref.Token, r.Desired)
	if err != nil {
		return Progress{}, err
	}
	return t.inner.(typedUpdater[C]).Update(ctx, r, c)
}

func (t typedAbilities[C]) Validate(ctx context.Context, d Desired) error {
	c, err := t.config.decode("validate", "", d)
	if v, ok := t.inner.(typedValidator[C]); ok && err == nil {
		return v.Validate(ctx, d, c)
	}
	return err
}

func (t typedAbilities[C]) Adopt(ctx context.Context, r AdoptRequest) (Instance, error) {
	c, err := t.config.decode("adopt instance", r.As.Token, r.As.Desired)
	if err != nil {
		return Instance{}, err
	}
	return t.inner.(typedAdopter[C]).Adopt(ctx, r, c)
}

func (t typedAbilities[C]) Capacity(ctx context.Context, d Desired) (map[string]string, error) {
	c, err := t.config.decode("capacity", "", d)
	if err != nil {
		return nil, err
	}
	return t.inner.(typedCapacity[C]).Capacity(ctx, d, c)
}

func (t typedAbilities[C]) Resize(ctx context.Context, name string, size int, d Desired) error {
	c, err := t.config.decode("resize group", name, d)
	if err != nil {
		return err
	}
	return t.inner.(typedGroup[C]).Resize(ctx, name, size, d, c)
}
