// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/option"
)

// Options are common to [NewLeaseKeeper], [NewEvictionRequester] and [NewAnnotationResponder]. The zero value is the
// usual choice.
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

// checkCaller notes in check what is wrong with the parts of a caller.
func checkCaller(check *option.Checker, client kubernetes.Interface, o Options) {
	check.Require("client", client, "see k8s.io/client-go/kubernetes.NewForConfig")
	checkTimeout(check, o)
}

func checkTimeout(check *option.Checker, o Options) {
	if o.Timeout < 0 {
		check.Wrong("Options.Timeout must not be negative, got %s", o.Timeout)
	}
}

func newCaller(client kubernetes.Interface, o Options) caller {
	c := caller{client: client, timeout: orDefault(o.Timeout, shortTimeout), now: o.Now}
	if c.now == nil {
		c.now = time.Now
	}
	return c
}

func (c caller) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}
