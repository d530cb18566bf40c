// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/belayproject/belay/machine/provider"
)

// Config is what a user writes into the machine.
type Config struct {
	provider.Kind
	Image string `json:"image"`
}

// Memory keeps its instances in a map, and forgets them when the process ends: a real provider may not.
type Memory struct {
	sync.Mutex
	made map[string]provider.Instance // without a token where it was destroyed
}

func (m *Memory) Create(_ context.Context, r provider.CreateRequest, _ Config) (provider.Instance, error) {
	m.Lock()
	defer m.Unlock()
	if i, known := m.made[r.Token]; known && i.Digest != r.Digest {
		return i, provider.Errorf(provider.Conflict, "token %q is used up, or has another digest", r.Token)
	} else if !known {
		m.made[r.Token] = provider.Instance{Token: r.Token, ProviderID: "memory:///" + r.Token, Owner: r.Owner, Digest: r.Digest, State: provider.Running}
	}
	return m.made[r.Token], nil
}

func (m *Memory) Get(_ context.Context, ref provider.Ref) (provider.Instance, error) {
	m.Lock()
	defer m.Unlock()
	if i := m.made[ref.Token]; i.Token != "" {
		return i, nil
	}
	return provider.Instance{}, provider.Errorf(provider.NotFound, "no instance %q", ref.Token)
}

func (m *Memory) List(_ context.Context, s provider.Scope) (all []provider.Instance, err error) {
	m.Lock()
	defer m.Unlock()
	for _, i := range m.made {
		if i.Token != "" && i.Owner.Cluster == s.Cluster {
			all = append(all, i)
		}
	}
	return all, nil
}

func (m *Memory) Delete(_ context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	m.Lock()
	defer m.Unlock()
	i := m.made[r.Ref.Token]
	switch i.State = provider.Retained; {
	case i.Token != "" && i.Owner.Cluster != r.Cluster:
		return provider.Progress{}, provider.Errorf(provider.NotFound, "no instance %q of cluster %q", r.Ref.Token, r.Cluster)
	case i.Token != "" && r.Mode == provider.Destroy:
		m.made[r.Ref.Token] = provider.Instance{}
	case i.Token != "":
		m.made[r.Ref.Token] = i
	}
	return provider.Progress{Done: true, Stopped: true}, nil
}

// How to write a provider: a type for its config, and four methods.
func Example() {
	p := provider.Typed(provider.Kind{APIVersion: "acme.dev/v1", Kind: "Memory"}, &Memory{made: map[string]provider.Instance{}})
	for _, fields := range []string{`"image": "debian-12"`, `"Image": "debian-12"`, `"image": 12`} {
		d := provider.Desired{Config: []byte(`{"apiVersion": "acme.dev/v1", "kind": "Memory", ` + fields + `}`)}
		r := provider.CreateRequest{Token: "t-1", Owner: provider.Owner{Cluster: "prod"}, Digest: d.Digest(), Desired: d}
		if i, err := p.Create(context.Background(), r); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(i.State, i.ProviderID)
		}
	}
	// Output:
	// Running memory:///t-1
	// InvalidConfig: create instance "t-1": config field "Image" is not known: want "image"
	// InvalidConfig: create instance "t-1": config field "image" is a number of 2 digits: want a string
}
