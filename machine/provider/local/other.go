// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package local

import (
	"context"
	"runtime"

	"github.com/belayproject/belay/machine/provider"
)

// A Provider makes machines of processes. There is none on this system.
type Provider struct{ provider.Provider }

// New returns a NotSupported error: processes are told apart by what Linux says of them.
func New(context.Context, Options) (*Provider, error) {
	return nil, provider.Errorf(provider.NotSupported, "local machines need Linux, and this is %s", runtime.GOOS)
}

// Abilities are none.
func (p *Provider) Abilities() provider.Abilities { return provider.Abilities{} }

// Close does nothing.
func (p *Provider) Close() error { return nil }
