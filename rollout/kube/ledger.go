// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/internal/strictjson"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

const (
	// ledgerFinalizer keeps the object of a ledger from being deleted by accident.
	ledgerFinalizer = "rollout.belay.dev/ledger"

	callTime = 10 * time.Second
)

// A LedgerStore is a [rollout.LedgerStore] in one DisruptionLedger, and a [rollout.SeenLedger] while Run goes on.
type LedgerStore interface {
	rollout.SeenLedger
	// Run watches the ledger, for Seen, until ctx ends. changed is called after each change; it must not block.
	Run(ctx context.Context, changed func()) error
	// Check returns nil while Run watches the ledger and is not refused: see [NoteWatchErrors].
	Check() error
}

type ledgerStore struct {
	objects objects
	name    string
	client  dynamic.Interface

	mu    sync.Mutex
	last  *unstructured.Unstructured // the newest one that was read, written or watched, so that a Store after a Load is one call
	watch *watchState                // while it is watched
}

// NewLedgerStore returns the ledger of the domain of that name, which need not exist.
func NewLedgerStore(client dynamic.Interface, domain string) (LedgerStore, error) {
	check := checkerFor("NewLedgerStore")
	check.Require("client", client, clientRemedy)
	check.Require("domain", domain, domainRemedy)
	if err := check.Err(); err != nil {
		return nil, err
	}
	kind := objects{v1alpha1.DisruptionLedgerKind, client.Resource(v1alpha1.DisruptionLedgersResource)}
	return &ledgerStore{objects: kind, name: domain, client: client}, nil
}

// Load implements [rollout.LedgerStore].
func (s *ledgerStore) Load(ctx context.Context) (protocol.Ledger, string, error) {
	u, err := s.get(ctx)
	if err != nil {
		return protocol.Ledger{}, "", err
	}
	l, err := ledgerIn(u)
	if err != nil {
		return protocol.Ledger{}, "", fmt.Errorf("reading %s %q: %w: %w", s.objects.kind, s.name, rollout.ErrUnreadable, err)
	}
	return l, u.GetResourceVersion(), nil
}

// Store implements [rollout.LedgerStore].
func (s *ledgerStore) Store(ctx context.Context, l protocol.Ledger, version string) (string, error) {
	spec, err := specOf(l)
	if err != nil {
		return "", fmt.Errorf("writing %s %q: %w", s.objects.kind, s.name, err)
	}
	if version == "" {
		return s.create(ctx, spec)
	}
	u, err := s.base(ctx, version)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %w", rollout.ErrConflict, err)
	}
	if err != nil {
		return "", err
	}
	u.Object["spec"] = spec
	u.SetResourceVersion(version) // the server refuses if it has gone on
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	stored, err := s.objects.client.Update(ctx, u, metav1.UpdateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict})
	if err := s.objects.written("writing", s.name, err); err != nil {
		return "", err
	}
	return s.remember(stored), nil
}

func (s *ledgerStore) create(ctx context.Context, spec map[string]any) (string, error) {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(s.objects.kind))
	u.SetName(s.name)
	u.SetFinalizers([]string{ledgerFinalizer})
	made, err := s.objects.create(ctx, u)
	if err != nil {
		return "", err
	}
	return s.remember(made), nil
}

// base is the object to write the ledger into: with everything that others have put there.
func (s *ledgerStore) base(ctx context.Context, version string) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last != nil && last.GetResourceVersion() == version {
		return last.DeepCopy(), nil
	}
	return s.get(ctx)
}

func (s *ledgerStore) get(ctx context.Context) (*unstructured.Unstructured, error) {
	u, err := s.objects.get(ctx, s.name)
	if errors.Is(err, fs.ErrNotExist) {
		s.forget()
	}
	if err != nil {
		return nil, err
	}
	s.remember(u)
	return u.DeepCopy(), nil
}

// remember keeps the object, unless a newer one is known, and returns its version.
func (s *ledgerStore) remember(u *unstructured.Unstructured) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || !behind(u, s.last) {
		s.last = u
	}
	return u.GetResourceVersion()
}

func specOf(l protocol.Ledger) (map[string]any, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	spec := v1alpha1.LedgerSpecOf(l)
	return fields(&spec)
}

// ledgerIn reads the ledger strictly: a field that this version does not know may be one that keeps a cap.
func ledgerIn(u *unstructured.Unstructured) (l protocol.Ledger, err error) {
	text, err := json.Marshal(u.Object["spec"])
	if err != nil {
		return l, fmt.Errorf("spec: %w", err)
	}
	var spec v1alpha1.DisruptionLedgerSpec
	if err := strictjson.DecodePublic(text, &spec); err != nil {
		return l, fmt.Errorf("spec: %w", err)
	}
	l = v1alpha1.LedgerOf(spec)
	if err := l.Validate(); err != nil {
		return l, fmt.Errorf("spec: %w", err)
	}
	return l, nil
}
