// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/layers"
	"github.com/belayproject/belay/examples/internal/agent/prove"
)

// proofDir is the directory in the state directory where the program that proves finds a config. No name of a record
// reaches it.
const proofDir = ".proof"

// defaultProveTimeout leaves a guard time for its own work.
const defaultProveTimeout = 10 * time.Second

// Prove is the program that judges a config before it is adopted.
type Prove struct {
	// Command is its file, Args are its arguments; empty: there is none.
	Command string
	Args    []string
	// Version is that of what reads the config; empty means the agent's.
	Version string
	// Timeout is the longest time that it takes.
	Timeout time.Duration
	// ShowOutput says that what it writes holds nothing of a config.
	ShowOutput bool
}

func (p *Prove) addFlags(f *pflag.FlagSet) {
	f.StringVar(&p.Command, "prove-command", "", "program that judges a config before it is adopted, on its standard input: exit status 0 accepts it, 65 refuses it, with any other the config waits; empty means none")
	f.StringArrayVar(&p.Args, "prove-arg", nil, "argument of --prove-command; may be given more than once; "+prove.PayloadFile+" in it is the file with the config, in place of standard input")
	f.StringVar(&p.Version, "prove-version", "", "version of what reads the config, such as the kubelet's: an answer of --prove-command is kept for that version; empty means the agent's")
	f.DurationVar(&p.Timeout, "prove-timeout", defaultProveTimeout, "longest time that --prove-command may take; then it is killed, and the config waits")
	f.BoolVar(&p.ShowOutput, "prove-show-output", false, "show the end of what --prove-command writes, where it refuses: only for one that writes nothing of a config")
}

func (p *Prove) validate(all *problems) {
	given := p.Command != ""
	all.need(!given || filepath.IsAbs(p.Command), "prove-command", p.Command, "must be an absolute path, such as /usr/local/bin/kubelet-check")
	all.need(given || len(p.Args) == 0, "prove-arg", fmt.Sprint(p.Args), "must be empty without --prove-command, whose arguments these are")
	all.need(given || p.Version == "", "prove-version", p.Version, "must be empty without --prove-command, whose answers are kept for it")
	all.need(given || !p.ShowOutput, "prove-show-output", p.ShowOutput, "must be false without --prove-command, whose output it is about")
	all.positive("prove-timeout", p.Timeout, defaultProveTimeout.String())
}

// proof is the program as one of the Proofs of a Syncer; store, which may be nil, keeps what it says.
func (l *Local) proof(store configsync.Store, around func() (layers.Stack, error)) configsync.Inspector {
	p, err := l.program(store, around)
	if err != nil {
		return unable{err}
	}
	return p
}

func (l *Local) program(store configsync.Store, around func() (layers.Stack, error)) (*prove.Program, error) {
	o := prove.Options{
		Path: l.Prove.Command, Args: l.Prove.Args, Version: cmp.Or(l.Prove.Version, Version()),
		Timeout: l.Prove.Timeout, ShowOutput: l.Prove.ShowOutput,
	}
	if l.StateDir != "" {
		dir, err := filepath.Abs(l.StateDir)
		if err != nil {
			return nil, err
		}
		o.FileDir = filepath.Join(dir, proofDir)
	}
	if store != nil {
		o.Store = store
	}
	if around != nil {
		o.Payload = merged(around)
	}
	return prove.New(o)
}

// merged gives what the kubelet makes of a config on this node. The config was judged before: what is in the way is no
// fault of it.
func merged(around func() (layers.Stack, error)) documentFunc {
	return func(_ context.Context, key string, o configsync.Object) ([]byte, error) {
		stack, err := around()
		if err == nil {
			var m layers.Merged
			if m, err = stack.Of(key, o); err == nil {
				return m.Doc, nil
			}
		}
		return nil, fmt.Errorf("%w: what this node lays around it: %w", configsync.ErrUndecided, err)
	}
}

// unable is a program that can't be asked: that makes nothing good, and nothing bad.
type unable struct{ err error }

// Inspect implements configsync.Inspector.
func (u unable) Inspect(context.Context, string, configsync.Object) error {
	return fmt.Errorf("%w: %w", configsync.ErrUndecided, u.err)
}

// ProveProblem says why the program of --prove-command can't be run now; nil where there is none, or nothing is known
// to be in its way. It is no wrong flag: a node whose program isn't there waits with new configs, and runs.
func (l *Local) ProveProblem() error {
	if l.Prove.Command == "" {
		return nil
	}
	p, err := l.program(nil, nil)
	if err == nil {
		err = p.Ready()
	}
	if err == nil {
		return nil
	}
	return &FlagError{Flag: "prove-command", Value: l.Prove.Command, Want: "must be a program that can be run: " + err.Error()}
}
