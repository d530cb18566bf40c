// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/compat"
	"github.com/belayproject/belay/internal/option"

	"github.com/belayproject/belay/machine/provider"
)

// protocolVersion is the version of the protocol that is spoken.
const protocolVersion = 1

// Defaults of [Options].
const (
	defaultTimeout   = 30 * time.Second
	defaultMaxOutput = 16 << 20
)

// Options say which program to call, and how.
type Options struct {
	// Path is the program: absolute, or a name that is looked for in PATH.
	Path string
	// Args stand before the verb.
	Args []string
	// Env is the whole environment of the program; nil is PATH alone. It must not hold secrets that are a machine's.
	Env []string
	// Timeout is how long a call may take; 0 is 30 s. The program is killed then.
	Timeout time.Duration
	// MaxOutput is how many bytes a reply may have; 0 is 16 MiB.
	MaxOutput int
}

// A program is called for each verb.
type program struct {
	o     Options
	verbs []string
}

// New returns a provider that calls a program, and asks it once what it can do: see [provider.AbilitiesOf]. What it
// says is believed until the next New.
func New(ctx context.Context, o Options) (provider.Provider, error) {
	switch {
	case o.Path == "":
		missing := option.CheckRequired("machine/provider/exec.New", "Options.Path", "", "the program")
		return nil, provider.Errorf(provider.InvalidConfig, "new exec provider: %w", missing)
	case o.Timeout < 0 || o.MaxOutput < 0:
		return nil, provider.Errorf(provider.InvalidConfig, "new exec provider %q: Timeout is %s and MaxOutput %d: want 0 or more", o.Path, o.Timeout, o.MaxOutput)
	}
	o.Args, o.Env = slices.Clone(o.Args), slices.Clone(o.Env)
	o.Timeout, o.MaxOutput = cmp.Or(o.Timeout, defaultTimeout), cmp.Or(o.MaxOutput, defaultMaxOutput)
	if o.Env == nil {
		o.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	p := &program{o: o}
	r, err := p.call(ctx, verbAbilities, hello{Protocol: protocolVersion})
	if err != nil {
		return nil, fmt.Errorf("new exec provider %q: %w", o.Path, err)
	}
	if r.Protocol != protocolVersion {
		return nil, provider.Errorf(provider.NotSupported, "new exec provider %q: it speaks protocol %d: want %d", o.Path, r.Protocol, protocolVersion)
	}
	p.verbs = r.Abilities
	for _, verb := range []string{verbCreate, verbDelete} {
		if !p.has(verb) {
			return nil, provider.Errorf(provider.NotSupported, "new exec provider %q: its abilities are %.200q: want %q at least", o.Path, p.verbs, verb)
		}
	}
	return p, nil
}

func (p *program) has(verb string) bool { return slices.Contains(p.verbs, verb) }

// Abilities are those that the program has named.
func (p *program) Abilities() provider.Abilities {
	var a provider.Abilities
	can := able{p}
	if p.has(verbPlan) {
		a.Planner = can
	}
	if p.has(verbUpdate) {
		a.Updater = can
	}
	if p.has(verbValidate) {
		a.Validator = can
	}
	if p.has(verbStop) && p.has(verbReboot) {
		a.Power = can
	}
	if p.has(verbAdopt) {
		a.Adopter = can
	}
	if p.has(verbCapacity) {
		a.Capacity = can
	}
	if p.has(verbConsole) {
		a.Console = can
	}
	return a
}

// Create is as in [provider.Provider].
func (p *program) Create(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
	if err := provider.CheckToken(r.Token); err != nil {
		return provider.Instance{}, named(verbCreate, r.Token, err)
	}
	return p.instance(ctx, verbCreate, r.Token, r, r.Join.Bootstrap, r.Join.Credentials)
}

// Get is as in [provider.Provider]. It is NotSupported where the program does not have it.
func (p *program) Get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	ref, err := whole(verbGet, ref)
	if err == nil && !p.has(verbGet) {
		err = provider.Errorf(provider.NotSupported, "get %q: the program can't", ref.Token)
	}
	if err != nil {
		return provider.Instance{}, err
	}
	return p.instance(ctx, verbGet, ref.Token, ref)
}

// List is as in [provider.Provider]. It is NotSupported where the program does not have it.
func (p *program) List(ctx context.Context, s provider.Scope) ([]provider.Instance, error) {
	if !p.has(verbList) {
		return nil, provider.Errorf(provider.NotSupported, "list cluster %q: the program can't", s.Cluster)
	}
	r, err := p.call(ctx, verbList, s)
	if err != nil {
		return nil, named(verbList, s.Cluster, err)
	}
	if r.Instances == nil {
		return nil, provider.Errorf(provider.Internal, "list %q: the reply has no instances: want a list, if an empty one", s.Cluster)
	}
	for _, i := range r.Instances {
		if err := checkInstance(i, i.Token); err != nil {
			return nil, named(verbList, s.Cluster, err)
		}
		if i.Owner.Cluster != s.Cluster {
			return nil, provider.Errorf(provider.Internal, "list %q: the reply has instance %q of cluster %q", s.Cluster, i.Token, i.Owner.Cluster)
		}
	}
	return r.Instances, nil
}

// Delete is as in [provider.Provider].
func (p *program) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	ref, err := whole(verbDelete, r.Ref)
	if err == nil && r.Mode != "" && r.Mode != provider.Retain && r.Mode != provider.Destroy {
		err = provider.Errorf(provider.InvalidConfig, "delete %q: mode %.40q is none of Retain, Destroy", ref.Token, r.Mode)
	}
	if err != nil {
		return provider.Progress{}, err
	}
	r.Ref, r.Mode = ref, cmp.Or(r.Mode, provider.Retain)
	progress, err := p.progress(ctx, verbDelete, ref.Token, r, r.Credentials)
	progress.Stopped = progress.Stopped || progress.Done
	return progress, err
}

// whole returns a reference with its token, or an error if it has none.
func whole(verb string, ref provider.Ref) (provider.Ref, error) {
	ref.Token = cmp.Or(ref.Token, provider.TokenOf(ref.ProviderID))
	return ref, named(verb, ref.Token, provider.CheckToken(ref.Token))
}

// named says in an error which call it is about.
func named(verb, what string, err error) error {
	if err == nil {
		return nil
	}
	after := provider.AfterOf(err)
	class := provider.ClassOf(err)
	if own, ok := compat.AsType[*provider.Error](err); ok {
		err = own.Err
	}
	e := provider.Errorf(class, "%s %.80q: %w", verb, what, err)
	e.After = after
	return e
}

func (p *program) instance(ctx context.Context, verb, token string, request any, secrets ...map[string][]byte) (provider.Instance, error) {
	r, err := p.call(ctx, verb, request, secrets...)
	if err == nil && r.Instance == nil {
		err = provider.Errorf(provider.Internal, "the reply has no instance")
	}
	if err == nil {
		err = checkInstance(*r.Instance, token)
	}
	if err != nil {
		return provider.Instance{}, named(verb, token, err)
	}
	return *r.Instance, nil
}

func (p *program) progress(ctx context.Context, verb, token string, request any, secrets ...map[string][]byte) (provider.Progress, error) {
	r, err := p.call(ctx, verb, request, secrets...)
	if err == nil && r.Progress == nil {
		err = provider.Errorf(provider.Internal, "the reply has no progress")
	}
	if err != nil {
		return provider.Progress{}, named(verb, token, err)
	}
	return *r.Progress, nil
}

// checkInstance returns an error when a reply can't be about the instance of a token.
func checkInstance(i provider.Instance, token string) error {
	switch {
	case i.Token != token || provider.CheckToken(i.Token) != nil:
		return provider.Errorf(provider.Internal, "the reply is about token %.80q: want %q", i.Token, token)
	case i.ProviderID != "" && provider.TokenOf(i.ProviderID) != token:
		return provider.Errorf(provider.Internal, "the reply has ProviderID %.200q: want one that ends in %q", i.ProviderID, "/"+token)
	case !slices.Contains(states(), i.State):
		return provider.Errorf(provider.Internal, "the reply has state %.40q: want one of %s", i.State, strings.Join(texts(states()), ", "))
	case i.State == provider.Running && i.ProviderID == "":
		return provider.Errorf(provider.Internal, "the reply has a running instance without a ProviderID")
	}
	return nil
}

func states() []provider.State {
	return []provider.State{provider.Pending, provider.Running, provider.Stopping, provider.Stopped, provider.Retained, provider.Broken}
}

func texts[T ~string](all []T) []string {
	var s []string
	for _, t := range all {
		s = append(s, string(t))
	}
	return s
}
