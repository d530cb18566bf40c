// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controllertest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/controller/controllertest"
)

// A write with an older version is refused, as by an API server.
func ExampleStore() {
	s, ctx := &controllertest.Store{}, context.Background()
	read := s.Put(machine.Machine{Key: machine.Key{Namespace: "fleet", Name: "a"}})
	if _, err := s.SetFinalizer(ctx, read, true); err != nil {
		fmt.Println(err)
	}
	_, err := s.SetProviderID(ctx, read, "memory:///x")
	fmt.Println(errors.Is(err, controller.ErrConflict), err)
	// Output: true machine "fleet/a" is at version 2, not 1: the machine has changed since it was read
}
