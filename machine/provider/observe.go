// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"time"
)

// A Call is one call of a provider's method that has come back.
type Call struct {
	// Method is the name of the method: that of [Provider], or of an ability, as "Update" or "Stop". There are thirteen.
	Method string
	// Class is "" for a call that did not fail, and Internal for classes that this package does not have.
	Class Class
	Took  time.Duration
}

// Observe tells a function of every call after it has come back, for metrics: Method and Class have few values. The function must be quick, and is
// called concurrently. Around other decorators it sees what the caller sees, inside of them what the provider does. With nil it returns p.
func Observe(p Provider, see func(Call)) Provider {
	p = orAbsent(p)
	if see == nil {
		return p
	}
	return wrapped{p, func(ctx context.Context, method string, call func(context.Context) error) error {
		began := time.Now()
		err := call(ctx)
		see(Call{Method: method, Class: known(ClassOf(err)), Took: time.Since(began)})
		return err
	}}
}

// known keeps the number of classes fixed.
func known(c Class) Class {
	if _, ok := backoffs[c]; ok || c == "" {
		return c
	}
	return Internal
}

// defaultTimeout is long for a call that waits for no instance.
const defaultTimeout = time.Minute

// Timeout gives each call a deadline; zero and less is a minute. A call that has passed it fails as [Unavailable], as it may have had its effect.
// It relies on the provider to return when its ctx has ended.
func Timeout(p Provider, limit time.Duration) Provider {
	p = orAbsent(p)
	if limit <= 0 {
		limit = defaultTimeout
	}
	return wrapped{p, func(ctx context.Context, method string, call func(context.Context) error) error {
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err := call(bounded)
		if late := bounded.Err() != nil && ctx.Err() == nil; late && (ClassOf(err) == Internal || ClassOf(err) == Unavailable) {
			return Errorf(Unavailable, "%s took longer than %v: %w", method, limit, err)
		}
		return err
	}}
}
