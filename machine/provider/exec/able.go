// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"

	"github.com/belayproject/belay/machine/provider"
)

// able has the methods of all abilities. Only those that the program has named are given away.
type able struct{ p *program }

func (a able) Plan(ctx context.Context, r provider.UpdateRequest) (provider.Plan, error) {
	ref, err := whole(verbPlan, r.Ref)
	if err != nil {
		return provider.Plan{}, err
	}
	r.Ref = ref
	got, err := a.p.call(ctx, verbPlan, r, r.Join.Bootstrap, r.Join.Credentials)
	switch {
	case err != nil:
	case got.Plan == nil:
		err = provider.Errorf(provider.Internal, "the reply has no plan")
	case !got.Plan.known():
		err = provider.Errorf(provider.Internal, "the reply has method %.40q: want one of InPlace, Replace, Unsupported, Nothing", got.Plan.Method)
	}
	if err != nil {
		return provider.Plan{}, named(verbPlan, ref.Token, err)
	}
	return provider.Plan(*got.Plan), nil
}

func (a able) Update(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
	ref, err := whole(verbUpdate, r.Ref)
	if err != nil {
		return provider.Progress{}, err
	}
	r.Ref = ref
	return a.p.progress(ctx, verbUpdate, ref.Token, r, r.Join.Bootstrap, r.Join.Credentials)
}

func (a able) Validate(ctx context.Context, d provider.Desired) error {
	_, err := a.p.call(ctx, verbValidate, d)
	return named(verbValidate, "config", err)
}

func (a able) Stop(ctx context.Context, ref provider.Ref) (provider.Progress, error) {
	ref, err := whole(verbStop, ref)
	if err != nil {
		return provider.Progress{}, err
	}
	progress, err := a.p.progress(ctx, verbStop, ref.Token, onRef{Ref: ref})
	progress.Stopped = progress.Stopped || progress.Done
	return progress, err
}

func (a able) Reboot(ctx context.Context, ref provider.Ref, id string) (provider.Progress, error) {
	ref, err := whole(verbReboot, ref)
	if err != nil {
		return provider.Progress{}, err
	}
	return a.p.progress(ctx, verbReboot, ref.Token, onRef{Ref: ref, ID: id})
}

func (a able) Adopt(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
	from, err := whole(verbAdopt, r.From)
	if err == nil {
		err = named(verbAdopt, r.As.Token, provider.CheckToken(r.As.Token))
	}
	if err != nil {
		return provider.Instance{}, err
	}
	r.From = from
	return a.p.instance(ctx, verbAdopt, r.As.Token, r, r.As.Join.Bootstrap, r.As.Join.Credentials)
}

func (a able) Capacity(ctx context.Context, d provider.Desired) (map[string]string, error) {
	r, err := a.p.call(ctx, verbCapacity, d)
	if err == nil && len(r.Capacity) == 0 {
		err = provider.Errorf(provider.Internal, "the reply has no capacity")
	}
	return r.Capacity, named(verbCapacity, "config", err)
}

func (a able) Console(ctx context.Context, ref provider.Ref, limit int) ([]byte, error) {
	ref, err := whole(verbConsole, ref)
	if err == nil && limit < 0 {
		err = provider.Errorf(provider.InvalidConfig, "console %q: a limit of %d bytes: want 0 or more", ref.Token, limit)
	}
	if err != nil {
		return nil, err
	}
	r, err := a.p.call(ctx, verbConsole, onRef{Ref: ref, Limit: limit})
	if err != nil {
		return nil, named(verbConsole, ref.Token, err)
	}
	return r.Console[max(0, len(r.Console)-limit):], nil
}
