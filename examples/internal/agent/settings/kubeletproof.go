// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"path/filepath"

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

// digestProgram returns a function that gives the digest of the program that reads the config: the child, else the kubelet
// that judges. It gives an empty text where that can't be read, and is nil where neither is known.
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
	around := l.around()
	if around == nil {
		return []byte(local.Data[l.Key]), nil
	}
	stack, err := around()
	if err != nil {
		return nil, err
	}
	m, err := stack.Of(l.Key, local)
	return m.Doc, err
}

// NotChecked says what no part of this program has judged of a config, one sentence each.
func (l *Local) NotChecked() []string {
	program, _ := l.JudgingKubelet()
	return kubelet.NotChecked(program != "")
}
