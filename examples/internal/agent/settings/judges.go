// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/fields"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/configsync/layers"
	"github.com/belayproject/belay/configsync/signed"
)

// maxDocument bounds what is read of a file, in bytes.
const maxDocument = configsync.MaxObject

// readDocument reads a file of the node's own.
func readDocument(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	text, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("it has more than %d bytes", maxDocument)
	}
	return text, err
}

// policy reads the field policy.
func (l *Local) policy() (*fields.Policy, error) {
	text, err := readDocument(l.FieldPolicy)
	if err != nil {
		return nil, err
	}
	return fields.Parse(text)
}

// changes judges what a config changes on this node: what is compared is what the kubelet would use, not what nodes
// share.
type changes struct {
	policy func() (*fields.Policy, error) // read once
	pool   string
	around func() (layers.Stack, error) // nil: nothing
}

// Judge implements configsync.ChangePolicy.
func (c changes) Judge(from, to []byte) (disruption string, err error) {
	policy, err := c.policy()
	if err != nil {
		return "", fmt.Errorf("reading the field policy: %w", err)
	}
	if c.around != nil {
		if from, to, err = c.merged(from, to); err != nil {
			return "", err
		}
	}
	disruption, err = fields.Guard{Policy: policy, Pool: c.pool}.Judge(from, to)
	if err != nil || disruption == "" || disruption == drain {
		return disruption, err
	}
	// The kubelet's state on disk has to go, whatever the policy says.
	bound, err := kubelet.StateFiles{}.Drains(from, to)
	if err == nil && len(bound) > 0 {
		disruption = drain
	}
	return disruption, err
}

// drain is the word of a change before which pods have to leave.
const drain = "Drain"

func (c changes) merged(from, to []byte) (mergedFrom, mergedTo []byte, err error) {
	stack, err := c.around()
	if err != nil {
		return nil, nil, err
	}
	a, err := stack.Merge(from)
	if err != nil {
		return nil, nil, err
	}
	b, err := stack.Merge(to)
	return a.Doc, b.Doc, err
}

// trusted refuses what no trusted key has signed.
type trusted struct {
	keys func() (signed.Keys, error) // read once
}

// Inspect implements configsync.Inspector. Keys that can't be read make nothing good, and nothing bad.
func (t trusted) Inspect(ctx context.Context, key string, o configsync.Object) error {
	keys, err := t.keys()
	if err != nil {
		return fmt.Errorf("%w: %w", configsync.ErrUndecided, err)
	}
	return keys.Inspect(ctx, key, o)
}

// sound leaves a config alone while what is laid around it can't be used without it: that is no fault of the config.
type sound struct {
	around func() (layers.Stack, error)
	codec  configsync.Codec[*kubelet.Config]
	valid  []configsync.Validator[*kubelet.Config]
}

// Inspect implements configsync.Inspector.
func (s sound) Inspect(ctx context.Context, key string, _ configsync.Object) error {
	if err := s.alone(ctx, key); err != nil {
		return fmt.Errorf("%w: what this node lays around it: %w", configsync.ErrUndecided, err)
	}
	return nil
}

// alone judges what the node would use without a config of the source. Without a file of its own there are parts only.
func (s sound) alone(ctx context.Context, key string) error {
	stack, err := s.around()
	if err != nil {
		return err
	}
	if len(stack.Init) == 0 {
		_, err := stack.Merge(nil)
		return err
	}
	c, _, err := s.codec.Decode(key, configsync.Object{Data: map[string]string{key: string(stack.Init)}})
	if err != nil {
		return err
	}
	for _, v := range s.valid {
		if err := v.Validate(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// judge adds what judges objects and changes.
func (l *Local) judge(o *options, around func() (layers.Stack, error)) {
	if around != nil {
		o.Inspectors = append(o.Inspectors, sound{around, o.Codec, o.Validators})
	}
	if l.TrustedKeys != "" {
		o.Inspectors = append(o.Inspectors, trusted{sync.OnceValues(func() (signed.Keys, error) { return signed.Load(l.TrustedKeys) })})
	}
	if l.Own.Codec == nil {
		o.Inspectors = append(o.Inspectors, kubelet.AbsolutePaths())
	}
	if l.FieldPolicy != "" {
		o.Changes = changes{sync.OnceValues(l.policy), l.Pool, around}
	}
	if program, args := l.JudgingKubelet(); program != "" && l.StateDir != "" {
		o.Proofs = append(o.Proofs, l.kubeletProof(program, args, o, around))
	}
	if l.Prove.Command != "" {
		o.Proofs = append(o.Proofs, l.proof(o.Store, around))
	}
}

// validateJudges checks what a node must be able to read to judge a config.
func (l *Local) validateJudges(p *problems) {
	l.Prove.validate(p)
	p.need(l.ProveKubelet == ProveAuto || l.ProveKubelet == ProveNone || filepath.IsAbs(l.ProveKubelet), "prove-kubelet", l.ProveKubelet,
		"must be auto, none, or the absolute path of a kubelet")
	const ownCodec = "must be empty: the codec of this program decodes whole configs"
	p.need(l.Own.Codec == nil || l.ConfigDir == "", "config-dir", l.ConfigDir, ownCodec)
	p.need(l.Own.Codec == nil || l.NodeConfig == "", "node-config", l.NodeConfig, ownCodec)
	p.need(l.Own.Codec == nil || l.FieldPolicy == "", "field-policy", l.FieldPolicy, ownCodec)
	if l.FieldPolicy != "" {
		_, err := l.policy()
		p.need(err == nil, "field-policy", l.FieldPolicy, "must be a FieldPolicy that can be read: "+text(err))
	}
	p.need(l.Pool == "" || l.FieldPolicy != "", "pool", l.Pool, "must be empty without --field-policy, which is what asks for it")
	if l.TrustedKeys != "" {
		keys, err := signed.Load(l.TrustedKeys)
		if err == nil && len(keys.IDs()) == 0 {
			err = errors.New("it holds no file whose name ends in .pem")
		}
		p.need(err == nil, "trusted-keys", l.TrustedKeys, "must be a directory with public keys: "+text(err))
	}
	if l.NodeConfig != "" {
		p.need(l.ConfigDir == "", "node-config", l.NodeConfig,
			"must be empty with --config-dir: lay it there as a file of its own behind "+DropIn+", such as 95-node.conf")
		_, err := l.overlay()
		p.need(err == nil, "node-config", l.NodeConfig, "must be a part of a kubelet's config that can be read: "+text(err))
	}
}
