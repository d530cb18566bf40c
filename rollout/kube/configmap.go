// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

const (
	// ledgerKey is the key of the ConfigMap that holds the ledger, as JSON.
	ledgerKey = "ledger.json"
	// ledgerFinalizer keeps the object of a ledger from being deleted by accident.
	ledgerFinalizer = "rollout.belay.dev/ledger"

	callTime = 10 * time.Second
)

// ConfigMaps is the client that a [ConfigMapLedger] needs: client-go's CoreV1().ConfigMaps(namespace) is one.
type ConfigMaps interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.ConfigMap, error)
	Create(ctx context.Context, configMap *corev1.ConfigMap, opts metav1.CreateOptions) (*corev1.ConfigMap, error)
	Update(ctx context.Context, configMap *corev1.ConfigMap, opts metav1.UpdateOptions) (*corev1.ConfigMap, error)
}

// A ConfigMapLedger is a [rollout.LedgerStore] in one ConfigMap.
type ConfigMapLedger struct {
	client ConfigMaps
	name   string

	mu   sync.Mutex
	last *corev1.ConfigMap // as it was read or written last, so that a Store after a Load is one call
}

// NewConfigMapLedger returns the ledger in the ConfigMap of that name, which need not exist.
func NewConfigMapLedger(client ConfigMaps, name string) (*ConfigMapLedger, error) {
	check := checkerFor("NewConfigMapLedger")
	check.Require("client", client, "CoreV1().ConfigMaps(namespace) of client-go")
	check.Require("name", name, "the name of the ConfigMap")
	if err := check.Err(); err != nil {
		return nil, err
	}
	return &ConfigMapLedger{client: client, name: name}, nil
}

// Load implements [rollout.LedgerStore].
func (c *ConfigMapLedger) Load(ctx context.Context) (protocol.Ledger, string, error) {
	object, err := c.get(ctx)
	if err != nil {
		return protocol.Ledger{}, "", err
	}
	l, err := decode(object)
	if err != nil {
		return protocol.Ledger{}, "", fmt.Errorf("%w: %w", rollout.ErrUnreadable, err)
	}
	return l, object.ResourceVersion, nil
}

// Store implements [rollout.LedgerStore].
func (c *ConfigMapLedger) Store(ctx context.Context, l protocol.Ledger, version string) (string, error) {
	if version == "" {
		return c.create(ctx, l)
	}
	object, err := c.base(ctx, version)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %w", rollout.ErrConflict, err)
	}
	if err != nil {
		return "", err
	}
	if err := encode(object, l); err != nil {
		return "", err
	}
	object.ResourceVersion = version // the server refuses if it has gone on
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	stored, err := c.client.Update(ctx, object, metav1.UpdateOptions{})
	return c.written(stored, err)
}

// base is the object to write the ledger into: with everything that others have put there.
func (c *ConfigMapLedger) base(ctx context.Context, version string) (*corev1.ConfigMap, error) {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	if last != nil && last.ResourceVersion == version {
		return last.DeepCopy(), nil
	}
	return c.get(ctx)
}

func (c *ConfigMapLedger) remember(object *corev1.ConfigMap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = object
}

func (c *ConfigMapLedger) create(ctx context.Context, l protocol.Ledger) (string, error) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.name, Finalizers: []string{ledgerFinalizer}}}
	if err := encode(object, l); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	stored, err := c.client.Create(ctx, object, metav1.CreateOptions{})
	return c.written(stored, err)
}

// written is the version of what was stored.
func (c *ConfigMapLedger) written(stored *corev1.ConfigMap, err error) (string, error) {
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return "", fmt.Errorf("ConfigMap %q: %w: %w", c.name, rollout.ErrConflict, err)
	case err != nil:
		return "", fmt.Errorf("writing ConfigMap %q: %w", c.name, err)
	}
	c.remember(stored)
	return stored.ResourceVersion, nil
}

// get reads the object as the storage has it: without a resourceVersion the API server answers from no cache.
func (c *ConfigMapLedger) get(ctx context.Context) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	object, err := c.client.Get(ctx, c.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("ConfigMap %q: %w", c.name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %q: %w", c.name, err)
	}
	c.remember(object)
	return object, nil
}

// encode puts the ledger into the object and leaves everything else there as it is.
func encode(object *corev1.ConfigMap, l protocol.Ledger) error {
	if err := l.Validate(); err != nil {
		return fmt.Errorf("writing ConfigMap %q: %w", object.Name, err)
	}
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("writing ConfigMap %q: %w", object.Name, err)
	}
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	object.Data[ledgerKey] = string(text)
	return nil
}

// decode reads the ledger strictly: a field that this version does not know may be one that keeps a cap.
func decode(object *corev1.ConfigMap) (l protocol.Ledger, err error) {
	text, ok := object.Data[ledgerKey]
	if !ok {
		return l, fmt.Errorf("ConfigMap %q has no key %q: it must hold the ledger that a rollout has written", object.Name, ledgerKey)
	}
	d := json.NewDecoder(bytes.NewBufferString(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return l, fmt.Errorf("ConfigMap %q, key %q: %w", object.Name, ledgerKey, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return l, fmt.Errorf("ConfigMap %q, key %q: there is more than one JSON value", object.Name, ledgerKey)
	}
	if err := l.Validate(); err != nil {
		return l, fmt.Errorf("ConfigMap %q, key %q: %w", object.Name, ledgerKey, err)
	}
	return l, nil
}
