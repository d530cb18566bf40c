// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import "context"

// A CreateDeleter is the least that can make machines.
type CreateDeleter interface {
	// Create is as in [Provider].
	Create(ctx context.Context, r CreateRequest) (Instance, error)
	// Delete is as in [Provider].
	Delete(ctx context.Context, r DeleteRequest) (Progress, error)
}

// Minimal makes a provider of what can only create and delete. Get and List answer [NotSupported]: what was recorded of an instance is believed,
// and orphans are not found. Its other abilities are kept. What is a [Provider] already is returned as it is.
func Minimal(p CreateDeleter) Provider {
	if p == nil {
		return absent{}
	}
	if whole, ok := p.(Provider); ok {
		return whole
	}
	return minimal{p}
}

type minimal struct{ CreateDeleter }

// Abilities are those of what it was made of.
func (m minimal) Abilities() Abilities { return abilitiesOf(m.CreateDeleter) }

// Get does not know.
func (m minimal) Get(_ context.Context, ref Ref) (Instance, error) {
	return Instance{}, Errorf(NotSupported, "get instance %q: the provider can only create and delete", ref.Token)
}

// List does not know.
func (m minimal) List(_ context.Context, s Scope) ([]Instance, error) {
	return nil, Errorf(NotSupported, "list instances of cluster %q: the provider can only create and delete", s.Cluster)
}
