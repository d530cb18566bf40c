// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

const (
	// Refusal is the exit status by which a program refuses a config. It is EX_DATAERR of sysexits.h, which neither a shell, nor a signal, nor a
	// runtime that can't start ends with.
	Refusal = 65
	// PayloadFile stands, anywhere in an argument, for the path of a file with the payload.
	PayloadFile = "{config}"
	// defaultTimeout is for how long a program may run where Options say nothing.
	defaultTimeout = 30 * time.Second
	// minSecret is the fewest bytes of a secret.
	minSecret = 16
)

// A Store keeps the answers. *checkpoint.Store satisfies it.
type Store interface {
	// Get returns the newest payload of a stream; absence is fs.ErrNotExist.
	Get(ctx context.Context, stream string) ([]byte, error)
	// Put makes payload the newest of its stream, durably.
	Put(ctx context.Context, stream string, payload []byte) error
}

// Options say what is run. All of it is local.
type Options struct {
	// Path is the program, absolute. It must be a file that only root or the agent's own user owns and may write to. Required.
	Path string
	// Args are its arguments. Where one holds PayloadFile the payload comes in that file, and standard input is empty.
	Args []string
	// Env is what its environment has besides PATH (the directories of the system), LC_ALL=C, and BELAY_CONFIG_DIGEST, the digest of the object.
	// Nothing is inherited.
	Env []string
	// Dir is the directory that it runs in: "/".
	Dir string
	// Version is that of the binary that is to use the config. Another version is asked anew. Required.
	Version string
	// FileDir is the directory of PayloadFile, absolute: the agent's own, for this purpose alone. It is made, with mode 0700, where it is missing.
	// Required where an argument holds PayloadFile.
	FileDir string
	// Timeout is for how long the program may run: defaultTimeout.
	Timeout time.Duration
	// ShowOutput says that what the program writes holds nothing of a payload. Then the end of it, at most maxShown bytes, stands in errors, and so in
	// the status, in events and in logs.
	ShowOutput bool
	// Payload gives what the program is to judge: the merged document of several layers, say. Nil means the entry of the object, byte for byte. Its
	// error is that of the proof: it repeats no data, and wraps configsync.ErrUndecided where it says nothing about the object.
	Payload func(ctx context.Context, key string, o configsync.Object) ([]byte, error)

	// Store keeps the answers over restarts. Nil means that they are forgotten with the process.
	Store Store
	// Secret, if not nil, is known to the agent alone, and has at least 16 bytes. Then no answer is believed that was not kept with it.
	Secret []byte
}

// check returns one error that names everything that is wrong.
func (o Options) check() error {
	var errs []error
	need := func(ok bool, problem string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("prove: Options."+problem, args...))
		}
	}
	need(filepath.IsAbs(o.Path), "Path must be absolute, got %q", o.Path)
	need(o.Dir == "" || filepath.IsAbs(o.Dir), "Dir must be absolute, got %q", o.Dir)
	need(o.Version != "", "Version must be set: answers are kept for each version")
	need(o.Timeout >= 0, "Timeout must be positive, or 0 for %s, got %s", defaultTimeout, o.Timeout)
	need(!o.byFile() || filepath.IsAbs(o.FileDir), "FileDir must be absolute, as an argument holds %s, got %q", PayloadFile, o.FileDir)
	need(o.Secret == nil || len(o.Secret) >= minSecret, "Secret must have at least %d bytes, got %d", minSecret, len(o.Secret))
	return errors.Join(errs...)
}

// byFile reports whether the payload is handed over in a file.
func (o Options) byFile() bool {
	return slices.ContainsFunc(o.Args, func(a string) bool { return strings.Contains(a, PayloadFile) })
}

// setup is the digest of what is run and how.
func (o Options) setup() string {
	h := sha256.New()
	for _, list := range [][]string{{o.Path, o.Dir}, o.Args, o.Env} {
		fmt.Fprintf(h, "%d\n", len(list)) // a hash takes all
		for _, s := range list {
			fmt.Fprintf(h, "%d %s\n", len(s), s)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// A Program judges configs. It is a configsync.Inspector. Make it with [New].
type Program struct {
	o     Options
	setup string
	turn  chan struct{} // held by who looks up, runs and writes; it guards what follows

	loaded  bool
	unsaved bool
	results []result // the oldest first
}

// New returns a Program, or an error that names what is wrong with o. Nothing is run, read or written yet: a program that isn't there holds configs back
// until it is.
func New(o Options) (*Program, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Dir == "" {
		o.Dir = "/"
	}
	o.Args, o.Env, o.Secret = slices.Clone(o.Args), slices.Clone(o.Env), slices.Clone(o.Secret)
	return &Program{o: o, setup: o.setup(), turn: make(chan struct{}, 1)}, nil
}

// Ready says why the program can't be run now: it isn't there, say, or others may write to it. It runs nothing.
func (p *Program) Ready() error { return trusted(p.o.Path) }

// Inspect implements configsync.Inspector: nil where the program accepts the config, else an [*Error], or what Options.Payload says. It gives what is on
// record, and runs the program where nothing is. An answer that can't be recorded is not given; the next call records it, and does not run the program
// again.
func (p *Program) Inspect(ctx context.Context, key string, o configsync.Object) error {
	payload, err := p.payload(ctx, key, o)
	if err != nil {
		return err
	}
	c := p.caseOf(key, o, payload)
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return c.undecided(ctx.Err())
	}
	defer func() { <-p.turn }()
	if !p.loaded && p.o.Store != nil {
		p.results = p.read(ctx, p.o.Store)
		p.loaded = ctx.Err() == nil
	}
	r, known := find(p.results, c)
	if !known {
		if r, err = p.run(ctx, c, payload); err != nil {
			return err
		}
		p.results, p.unsaved = kept(append(p.results, r)), p.o.Store != nil
	}
	if err := p.save(ctx); err != nil {
		return c.undecided(fmt.Errorf("keeping the answer: %w", err))
	}
	return r.err()
}

// payload is what the program gets.
func (p *Program) payload(ctx context.Context, key string, o configsync.Object) ([]byte, error) {
	if p.o.Payload != nil {
		return p.o.Payload(ctx, key, o)
	}
	return []byte(o.Data[key]), nil
}

// caseOf names what is to be judged.
func (p *Program) caseOf(key string, o configsync.Object, payload []byte) subject {
	sum := sha256.Sum256(payload)
	return subject{Version: p.o.Version, Setup: p.setup, Digest: o.Digest(), Key: key, Payload: hex.EncodeToString(sum[:])}
}

// Recall gives what is on record alone, as configsync.Explain asks for it: nothing is run or written, and what is not on record is undecided. It may be used
// beside a live agent.
func (p *Program) Recall(g lkg.Getter) configsync.Inspector { return recall{p, g} }

type recall struct {
	p *Program
	g lkg.Getter
}

// Inspect implements configsync.Inspector.
func (r recall) Inspect(ctx context.Context, key string, o configsync.Object) error {
	payload, err := r.p.payload(ctx, key, o)
	if err != nil {
		return err
	}
	c := r.p.caseOf(key, o, payload)
	if found, ok := find(r.p.read(ctx, r.g), c); ok {
		return found.err()
	}
	return c.undecided(errNoAnswer)
}

var errNoAnswer = errors.New("no answer is on record yet")
