// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

type creatingAll struct{ Provider }

func (creatingAll) Create(context.Context, CreateRequest) (Instance, error) { return Instance{}, nil }

func (creatingAll) List(context.Context, Scope) ([]Instance, error) { return nil, nil }

// What was changed is forgotten when no list can be wrong about it.
func TestCoalesceGetDoesNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := CoalesceGet(creatingAll{}, Scope{}, CoalesceOptions{})
		c := p.(coalesced).c
		create := func() {
			for i := range 1000 {
				if _, err := p.Create(t.Context(), CreateRequest{Token: strconv.Itoa(i)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		create()
		if n := len(c.changed); n != 0 {
			t.Errorf("%d tokens are remembered without any list", n)
		}
		if _, err := p.List(t.Context(), Scope{}); err != nil {
			t.Fatal(err)
		}
		create()
		if n := len(c.changed); n != 1000 {
			t.Errorf("%d tokens are remembered after a list, want all: it is out of date for them", n)
		}
		time.Sleep(time.Minute)
		if _, err := p.List(t.Context(), Scope{}); err != nil {
			t.Fatal(err)
		}
		if n := len(c.changed); n != 0 {
			t.Errorf("%d tokens are remembered after a list that knows them", n)
		}
	})
}
