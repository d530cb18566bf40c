// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
)

// TestDecoratorsOfNothingAreRefused shows that a decorator around no provider is as good as none: New refuses it, and
// no machine is said to have a config that is wrong.
func TestDecoratorsOfNothingAreRefused(t *testing.T) {
	nodes := &controllertest.Cluster{}
	for name, p := range map[string]provider.Provider{
		"Timeout": provider.Timeout(nil, time.Second),
		"Observe": provider.Observe(nil, nil),
		"Minimal": provider.Minimal(nil),
		"two":     provider.Observe(provider.Timeout(nil, 0), func(provider.Call) {}),
	} {
		_, err := controller.New(controller.Options{
			Cluster: "east", Machines: &controllertest.Store{}, Nodes: nodes, Provider: p, Drainer: nodes,
		})
		if err == nil || !strings.Contains(err.Error(), "Options.Provider is required") {
			t.Errorf("%s: got error %v, want one that says that Options.Provider is required", name, err)
		}
		if _, err := p.List(t.Context(), provider.Scope{}); provider.ClassOf(err) != provider.Internal {
			t.Errorf("%s: List: got error %v, want class Internal", name, err)
		}
	}
	p := provider.Timeout(&machinetest.Memory{}, 0)
	o := controller.Options{Cluster: "east", Machines: &controllertest.Store{}, Nodes: nodes, Provider: p, Drainer: nodes}
	if _, err := controller.New(o); err != nil {
		t.Errorf("a decorator around a provider: %v", err)
	}
}
