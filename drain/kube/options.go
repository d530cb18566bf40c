// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
)

// Options are common to the [LeaseKeeper] and the [AnnotationResponder]. The zero value is the usual choice.
type Options struct {
	// Timeout bounds each call. Zero means 10 s.
	Timeout time.Duration
	// Now is the wall clock of what is written. Nil means time.Now.
	Now func() time.Time
}

// shortTimeout is for calls that the server answers at once.
const shortTimeout = 10 * time.Second

// caller is a client with a deadline and a clock.
type caller struct {
	client  kubernetes.Interface
	timeout time.Duration
	now     func() time.Time
}

func newCaller(client kubernetes.Interface, o Options) (caller, error) {
	if client == nil {
		return caller{}, errors.New("client must be set")
	}
	if o.Timeout < 0 {
		return caller{}, fmt.Errorf("timeout must not be negative, got %s", o.Timeout)
	}
	c := caller{client: client, timeout: orDefault(o.Timeout, shortTimeout), now: o.Now}
	if c.now == nil {
		c.now = time.Now
	}
	return c, nil
}

func (c caller) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}
