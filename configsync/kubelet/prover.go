// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/filesum"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/lkg"
)

// defaultTimeout bounds one run of the kubelet where the options say nothing.
const defaultTimeout = 20 * time.Second

// ProverOptions say which kubelet judges, and on what.
type ProverOptions struct {
	// Program is the installed kubelet, an absolute path. Required.
	Program string
	// Args are the flags that the node starts it with. Those that name the config, the API server, the runtime or
	// directories are replaced.
	Args []string
	// Dir is a directory of the prover's own, absolute. It is made, with mode 0700, if it is missing. Required.
	Dir string
	// Timeout bounds one run of the kubelet: 20 s. A judgement takes up to four runs.
	Timeout time.Duration
	// Document returns the document that the kubelet would read for a config: the merged one, if the node has other
	// documents. Nil means the entry of the object. Its error is that of Inspect; it should wrap
	// configsync.ErrUndecided.
	Document func(ctx context.Context, key string, o configsync.Object) ([]byte, error)
	// Control returns a document that this node's kubelet runs with, usually the local config. If the kubelet refuses
	// that one too, a refusal is not the fault of a config. Nil means no such document.
	Control func(ctx context.Context) ([]byte, error)
	// Store keeps the answers over restarts, in the stream "kubelet-proofs". Nil means that they end with the process.
	Store configsync.Store
}

// A prover is what NewProver makes.
type prover struct {
	o    ProverOptions
	turn chan struct{} // held by the one caller that looks up, runs and writes; it guards what follows

	loaded  bool
	unsaved bool
	results []result // the oldest first
	binary  filesum.Cache
	sound   soundControl
}

// A soundControl remembers for a while that the kubelet starts in the sandbox on the control document.
type soundControl struct {
	id    string
	until time.Time
}

// controlTTL is how long.
const controlTTL = time.Minute

// NewProver returns an inspector that has the installed kubelet judge configs before a node adopts them, for the
// Proofs of configsync.Options, or an error that names everything that is wrong with o. NewProver runs nothing and
// reads nothing.
//
// The kubelet reads the document twice. First it validates the document and exits: it is told to look for a lock, and
// not where. Then, where the process may make namespaces (root on Linux), the kubelet really starts, with network,
// mounts, cgroups and root directory of its own, an API server that is away, and a runtime that has no pods. It is
// killed one second after it asks that runtime for its status, or at the time limit.
//
// An answer is kept for the content of the document, of the program, and the flags. A kill of the process before an
// answer is kept means that the kubelet is asked again. Cgroups that a killed process leaves are removed by the next
// run.
//
// Its Inspect returns nil if the kubelet accepts the config, and an error that says why not. The error wraps
// configsync.ErrUndecided if nothing is known: the program is missing, does not end, or refuses the control document
// too. Where the program is there and three judgements in a row find nothing out, it returns nil from the third on:
// the trial of the config decides. The error holds no text value of the document. It has the methods Recall and
// ForEachBinary that configsync.Options names.
func NewProver(o ProverOptions) (configsync.Inspector, error) {
	c := option.For("kubelet.NewProver", nil)
	c.Require("ProverOptions.Program", o.Program, "the absolute path of a kubelet")
	c.Require("ProverOptions.Dir", o.Dir, "an absolute path")
	if o.Program != "" && !filepath.IsAbs(o.Program) {
		c.Wrong("ProverOptions.Program must be an absolute path, such as /usr/bin/kubelet")
	}
	if o.Dir != "" && !filepath.IsAbs(o.Dir) {
		c.Wrong("ProverOptions.Dir must be an absolute path")
	}
	if o.Timeout < 0 {
		c.Wrong("ProverOptions.Timeout must not be negative")
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	o.Args = slices.Clone(o.Args)
	return &prover{o: o, turn: make(chan struct{}, 1)}, nil
}

// Inspect implements configsync.Inspector.
func (p *prover) Inspect(ctx context.Context, key string, o configsync.Object) error {
	s, err := p.newSubject(ctx, key, o)
	if err != nil {
		return err
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return asUndecided(ctx.Err())
	}
	defer func() { <-p.turn }()
	if err := s.setID(&p.binary); err != nil {
		return asUndecided(err)
	}
	if !p.loaded && p.o.Store != nil {
		p.results = readResults(ctx, p.o.Store)
		p.loaded = ctx.Err() == nil
	}
	r, known := findResult(p.results, s.id)
	if !known || r.isOpen() {
		tries := r.Tries + 1
		if r, err = p.judgeSubject(ctx, s); err != nil {
			if ctx.Err() != nil {
				return asUndecided(err)
			}
			r = result{ID: s.id, Tries: tries, Reason: err.Error()}
		}
		p.results, p.unsaved = keepResult(p.results, r), p.o.Store != nil
	}
	if p.unsaved {
		if err := saveResults(ctx, p.o.Store, p.results); err != nil {
			return asUndecided(fmt.Errorf("keeping the answer: %w", err))
		}
		p.unsaved = false
	}
	return r.err()
}

// ForEachBinary returns true: another kubelet may refuse a config that this one runs. A Syncer asks the prover about
// good configs too, at each start.
func (*prover) ForEachBinary() bool { return true }

// Recall returns an inspector that gives kept answers alone: it runs nothing, writes nothing, and may be used beside
// a live agent. configsync.Explain asks for it.
func (p *prover) Recall(g lkg.Getter) configsync.Inspector { return recall{p, g} }

type recall struct {
	p *prover
	g lkg.Getter
}

// ForEachBinary returns true, as for the prover.
func (recall) ForEachBinary() bool { return true }

// Inspect implements configsync.Inspector.
func (r recall) Inspect(ctx context.Context, key string, o configsync.Object) error {
	s, err := r.p.newSubject(ctx, key, o)
	if err != nil {
		return err
	}
	if r.g == nil {
		return asUndecided(errNoAnswer)
	}
	if err := s.setID(&filesum.Cache{}); err != nil {
		return asUndecided(err)
	}
	if found, ok := findResult(readResults(ctx, r.g), s.id); ok {
		return found.err()
	}
	return asUndecided(errNoAnswer)
}

// NotChecked says what a judgement on this machine leaves open, one sentence each; asked says whether a kubelet judges.
func NotChecked(asked bool) []string {
	all := []string{
		"whether the config fits what the kubelet has left on this disk (state files of the cpu, memory and device managers)",
		"whether the container runtime, the API server and the pods work under the config",
	}
	if !asked {
		return append([]string{"the values of the config: no kubelet is named that could judge them"}, all...)
	}
	if err := canIsolate(); err != nil {
		all = append([]string{"what a kubelet only finds out when it starts, such as files, CPUs and cgroups: " +
			err.Error()}, all...)
	}
	return all
}

var (
	errNoAnswer = errors.New("no answer of the kubelet is kept yet")
	errSlow     = errors.New("the kubelet was killed: it did not end in time")
)

func asUndecided(err error) error {
	if errors.Is(err, configsync.ErrUndecided) {
		return err
	}
	return fmt.Errorf("%w: asking the kubelet: %w", configsync.ErrUndecided, err)
}

// A subject is what is judged.
type subject struct {
	payload  []byte // the entry of the object; nil for a local config, whose unknown fields are passed over
	document []byte // what the kubelet reads
	program  string
	args     []string
	binary   string // digest of the program; set by setID, as id
	id       string
}

func (p *prover) newSubject(ctx context.Context, key string, o configsync.Object) (*subject, error) {
	s := &subject{document: []byte(o.Data[key]), program: p.o.Program, args: keptFlags(p.o.Args)}
	if o.UID != "" {
		s.payload = s.document
	}
	if p.o.Document == nil {
		return s, nil
	}
	var err error
	s.document, err = p.o.Document(ctx, key, o)
	return s, err
}

// judgeSubject asks the kubelet. An error means that nothing is known.
func (p *prover) judgeSubject(ctx context.Context, s *subject) (result, error) {
	if err := makeOwnDir(p.o.Dir); err != nil {
		return result{}, err
	}
	parsed, err := p.validate(ctx, s.document)
	if err != nil {
		return result{}, err
	}
	if parsed.refused {
		return p.attributeEnd(ctx, s, parsed)
	}
	if names := unknownIn(s.payload, parsed.unknown); len(names) > 0 {
		return result{ID: s.id, Refused: true, Reason: "the kubelet does not know the field " +
			strings.Join(names, ", ")}, nil
	}
	if canIsolate() != nil {
		return result{ID: s.id}, nil
	}
	started, err := p.start(ctx, s.document)
	switch {
	case errors.Is(err, errNotIsolated):
		return result{ID: s.id}, nil
	case err != nil:
		return result{}, err
	case !started.refused:
		return result{ID: s.id}, nil
	}
	if !p.controlStarts(ctx, s) {
		return result{ID: s.id}, nil // this machine is no place to start it: what the first run has found holds
	}
	if len(started.unserved) > 0 {
		return result{}, fmt.Errorf("no socket is there that the config names in %s: %s",
			strings.Join(started.unserved, " and "), started.reason)
	}
	return result{ID: s.id, Refused: true, Reason: started.reason}, nil
}

// attributeEnd makes a refusal of a run that only validates, unless the kubelet refuses the control document too.
func (p *prover) attributeEnd(ctx context.Context, s *subject, run outcome) (result, error) {
	if isFlagError(run.reason) {
		return result{}, fmt.Errorf("the kubelet does not take its flags: %s", run.reason)
	}
	if control, ok := p.controlDocument(ctx); ok {
		below, err := p.validate(ctx, control)
		if err == nil && below.refused && below.reason == run.reason {
			err = fmt.Errorf("it refuses the config in use too: %s", below.reason)
		}
		if err != nil {
			return result{}, err
		}
	}
	return result{ID: s.id, Refused: true, Reason: run.reason}, nil
}

// controlStarts reports whether the kubelet starts in the sandbox on the control document, if there is one.
func (p *prover) controlStarts(ctx context.Context, s *subject) bool {
	control, ok := p.controlDocument(ctx)
	if !ok {
		return true
	}
	id := s.binary + string(control)
	if p.sound.id == id && time.Now().Before(p.sound.until) {
		return true
	}
	below, err := p.start(ctx, control)
	if err != nil || below.refused {
		return false
	}
	p.sound = soundControl{id, time.Now().Add(controlTTL)}
	return true
}

func (p *prover) controlDocument(ctx context.Context) ([]byte, bool) {
	if p.o.Control == nil {
		return nil, false
	}
	doc, err := p.o.Control(ctx)
	return doc, err == nil && len(doc) > 0
}

// makeOwnDir makes the directory of the prover, or says why it is not one.
func makeOwnDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the prover's directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err == nil && (!info.IsDir() || info.Mode().Perm()&0o077 != 0) {
		err = fmt.Errorf("%q must be a directory for one user alone", dir)
	}
	return err
}
