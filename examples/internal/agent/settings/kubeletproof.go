// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/configsync/layers"
	"github.com/belayproject/belay/internal/filesum"
)

// The values of --prove-kubelet besides a path.
const (
	ProveAuto = "auto"
	ProveNone = "none"
)

// kubeletProofDir is the directory of the prover in the state directory. No name of a record reaches it.
const kubeletProofDir = ".kubelet-proof"

// JudgingKubelet returns the kubelet that judges configs, and the flags that the node starts it with. program is empty
// if there is none.
func (l *Local) JudgingKubelet() (program string, args []string) {
	isChild := len(l.Child) > 0 && filepath.Base(l.Child[0]) == "kubelet"
	switch {
	case l.ProveKubelet == ProveNone || l.ProveKubelet == "":
		return "", nil
	case l.ProveKubelet != ProveAuto:
		if len(l.Child) > 0 && l.Child[0] == l.ProveKubelet {
			args = l.Child[1:]
		}
		return l.ProveKubelet, args
	case isChild && l.Own.Codec == nil:
		return l.Child[0], l.Child[1:]
	}
	return "", nil
}

// digestProgram returns a function that gives the digest of the program that reads the config: the child, else the
// kubelet that judges. It gives an empty text where that can't be read, and is nil where neither is known.
func (l *Local) digestProgram() func() string {
	program, _ := l.JudgingKubelet()
	if len(l.Child) > 0 {
		program = l.Child[0]
	}
	if program == "" {
		return nil
	}
	var known filesum.Cache
	return func() string {
		sum, err := known.DigestOf(program)
		if err != nil {
			return ""
		}
		return sum
	}
}

// kubeletProof is the kubelet as one of the Proofs of a Syncer.
func (l *Local) kubeletProof(program string, args []string, o *options, around func() (layers.Stack, error)) configsync.Inspector {
	dir, err := filepath.Abs(l.StateDir)
	if err != nil {
		return unable{err}
	}
	p := kubelet.ProverOptions{Program: program, Args: args, Dir: filepath.Join(dir, kubeletProofDir), Control: l.inUseAlone}
	if around != nil {
		p.Document = merged(around)
	}
	if own := dropInsOfChild(l); own != "" {
		p.Document = withDropIns(own, p.Document)
	}
	if o.Store != nil {
		p.Store = o.Store
	}
	prover, err := kubelet.NewProver(p)
	if err != nil {
		return unable{err}
	}
	return prover
}

// inUseAlone is what the kubelet reads on this node without a config of the source.
func (l *Local) inUseAlone(ctx context.Context) ([]byte, error) {
	quiet := *l
	quiet.ProveKubelet, quiet.Prove.Command = ProveNone, ""
	o := quiet.Options()
	if o.Init == nil {
		return nil, nil
	}
	local, err := o.Init(ctx)
	if err != nil {
		return nil, err
	}
	var document documentFunc
	if around := l.around(); around != nil {
		document = merged(around)
	}
	if own := dropInsOfChild(l); own != "" {
		document = withDropIns(own, document)
	}
	if document == nil {
		return []byte(local.Data[l.Key]), nil
	}
	return document(ctx, l.Key, local)
}

// dropInsOfChild is the directory of drop-ins that the supervised kubelet reads by itself, and into which the agent
// does not write; or nothing.
func dropInsOfChild(l *Local) (dir string) {
	if l.ConfigDir != "" {
		return ""
	}
	for i := 1; i < len(l.Child); i++ {
		name, value, hasValue := strings.Cut(strings.TrimLeft(l.Child[i], "-"), "=")
		if strings.ReplaceAll(name, "_", "-") != "config-dir" || !strings.HasPrefix(l.Child[i], "-") {
			continue
		}
		if !hasValue && i+1 < len(l.Child) {
			value = l.Child[i+1]
		}
		dir = value
	}
	return dir
}

// A documentFunc returns the document that a kubelet reads for a config.
type documentFunc = func(ctx context.Context, key string, o configsync.Object) ([]byte, error)

// withDropIns lays the files of a directory over a document, as a kubelet does. Nil stands for the entry of the object.
func withDropIns(dir string, document documentFunc) documentFunc {
	return func(ctx context.Context, key string, o configsync.Object) (doc []byte, err error) {
		if doc = []byte(o.Data[key]); document != nil {
			if doc, err = document(ctx, key, o); err != nil {
				return nil, err
			}
		}
		below, above, err := dropIns(dir)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", configsync.ErrUndecided, err)
		}
		own, filled, err := kubelet.Lenient(doc)
		if err != nil || len(below)+len(above) == 0 {
			return doc, nil //nolint:nilerr // the kubelet says what is wrong with it
		}
		all := []layers.Layer{{Name: "the config", Doc: own}, {Name: "defaults of the kubelet", Doc: filled}}
		m, err := layers.Merge(append(append(all, below...), above...)...)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", configsync.ErrUndecided, err)
		}
		return m.Doc, nil
	}
}

// NotChecked says what no part of this program has judged of a config, one sentence each.
func (l *Local) NotChecked() []string {
	program, _ := l.JudgingKubelet()
	return kubelet.NotChecked(program != "")
}
