// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"encoding/json"
	"io"

	"github.com/belayproject/belay/internal/compat"
	"github.com/belayproject/belay/internal/option"

	"github.com/belayproject/belay/machine/provider"
)

// Serve is the other side, for a program in Go: it carries out one verb on a provider, with the request from in and the reply to out. Its error is
// one of in or out; what the provider returns is in the reply. The program then ends.
func Serve(ctx context.Context, p provider.Provider, verb string, in io.Reader, out io.Writer) error {
	check := option.For("machine/provider/exec.Serve", nil)
	check.Require("p", p, "the provider")
	check.Require("in", in, "os.Stdin")
	check.Require("out", out, "os.Stdout")
	if err := check.Err(); err != nil {
		return err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	r, err := serve(ctx, p, verb, data)
	if err != nil {
		r = reply{Error: &failure{Class: provider.ClassOf(err), Message: err.Error(), AfterSeconds: provider.AfterOf(err).Seconds()}}
		if own, ok := compat.AsType[*provider.Error](err); ok {
			r.Error.Message = own.Err.Error()
		}
	}
	return json.NewEncoder(out).Encode(r)
}

func serve(ctx context.Context, p provider.Provider, verb string, in []byte) (reply, error) {
	handlers := map[string]func() (reply, error){
		verbAbilities: func() (reply, error) {
			return with(in, func(hello) (reply, error) { return reply{Protocol: protocolVersion, Abilities: verbsOf(p)}, nil })
		},
		verbCreate: func() (reply, error) {
			return with(in, func(r provider.CreateRequest) (reply, error) { return instance(p.Create(ctx, r)) })
		},
		verbGet: func() (reply, error) {
			return with(in, func(r provider.Ref) (reply, error) { return instance(p.Get(ctx, r)) })
		},
		verbList: func() (reply, error) {
			return with(in, func(s provider.Scope) (reply, error) {
				all, err := p.List(ctx, s)
				return reply{Instances: append([]provider.Instance{}, all...)}, err
			})
		},
		verbDelete: func() (reply, error) {
			return with(in, func(r provider.DeleteRequest) (reply, error) { return progress(p.Delete(ctx, r)) })
		},
	}
	if handle := handlers[verb]; handle != nil {
		return handle()
	}
	return serveAble(ctx, provider.AbilitiesOf(p), verb, in)
}

// serveAble carries out the verbs that a provider may lack.
func serveAble(ctx context.Context, can provider.Abilities, verb string, in []byte) (reply, error) {
	handlers := map[string]func() (reply, error){}
	if can.Planner != nil {
		handlers[verbPlan] = func() (reply, error) {
			return with(in, func(r provider.UpdateRequest) (reply, error) {
				got, err := can.Planner.Plan(ctx, r)
				return reply{Plan: (*plan)(&got)}, err
			})
		}
	}
	if can.Updater != nil {
		handlers[verbUpdate] = func() (reply, error) {
			return with(in, func(r provider.UpdateRequest) (reply, error) { return progress(can.Updater.Update(ctx, r)) })
		}
	}
	if can.Validator != nil {
		handlers[verbValidate] = func() (reply, error) {
			return with(in, func(d provider.Desired) (reply, error) { return reply{}, can.Validator.Validate(ctx, d) })
		}
	}
	if can.Adopter != nil {
		handlers[verbAdopt] = func() (reply, error) {
			return with(in, func(r provider.AdoptRequest) (reply, error) { return instance(can.Adopter.Adopt(ctx, r)) })
		}
	}
	if can.Capacity != nil {
		handlers[verbCapacity] = func() (reply, error) {
			return with(in, func(d provider.Desired) (reply, error) {
				got, err := can.Capacity.Capacity(ctx, d)
				return reply{Capacity: got}, err
			})
		}
	}
	if handle := handlers[verb]; handle != nil {
		return handle()
	}
	return serveOnRef(ctx, can, verb, in)
}

// serveOnRef carries out the verbs that are about a reference.
func serveOnRef(ctx context.Context, can provider.Abilities, verb string, in []byte) (reply, error) {
	switch {
	case verb == verbStop && can.Power != nil:
		return with(in, func(r onRef) (reply, error) { return progress(can.Power.Stop(ctx, r.Ref)) })
	case verb == verbReboot && can.Power != nil:
		return with(in, func(r onRef) (reply, error) { return progress(can.Power.Reboot(ctx, r.Ref, r.ID)) })
	case verb == verbConsole && can.Console != nil:
		return with(in, func(r onRef) (reply, error) {
			got, err := can.Console.Console(ctx, r.Ref, r.Limit)
			return reply{Console: got}, err
		})
	}
	return reply{}, provider.Errorf(provider.NotSupported, "verb %.80q is none of the program's", verb)
}

// verbsOf are what "abilities" says. Get and list are named: a provider that can't says so itself.
func verbsOf(p provider.Provider) []string {
	can := provider.AbilitiesOf(p)
	verbs := []string{verbCreate, verbGet, verbList, verbDelete}
	for _, v := range []struct {
		has  bool
		verb string
	}{
		{can.Planner != nil, verbPlan}, {can.Updater != nil, verbUpdate}, {can.Validator != nil, verbValidate}, {can.Power != nil, verbStop},
		{can.Power != nil, verbReboot}, {can.Adopter != nil, verbAdopt}, {can.Capacity != nil, verbCapacity}, {can.Console != nil, verbConsole},
	} {
		if v.has {
			verbs = append(verbs, v.verb)
		}
	}
	return verbs
}

func with[Q any](in []byte, do func(Q) (reply, error)) (reply, error) {
	var q Q
	if err := json.Unmarshal(in, &q); err != nil {
		return reply{}, provider.Errorf(provider.InvalidConfig, "the request of %d bytes is not that of its verb", len(in)) // it may hold secrets
	}
	return do(q)
}

func instance(i provider.Instance, err error) (reply, error) { return reply{Instance: &i}, err }

func progress(p provider.Progress, err error) (reply, error) { return reply{Progress: &p}, err }
