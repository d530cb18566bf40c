// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/machinetest"
)

// A machine is declared, made, and ended; all parts are in memory. With machine/kube the store and the Nodes are those of API servers, and kube.Run calls
// Reconcile.
func Example() {
	cloud := &machinetest.Memory{}
	store := &controllertest.Store{}
	nodes := &controllertest.Cluster{Instances: cloud.Instances}
	c, err := controller.New(controller.Options{Cluster: "east", Machines: store, Nodes: nodes, Provider: cloud, Drainer: nodes})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, key := context.Background(), machine.Key{Namespace: "fleet", Name: "a"}
	m := machine.Machine{Key: key, UID: "5e1f"}
	m.Spec.Config = []byte(`{"image":"a"}`)
	store.Put(m)
	if _, err := c.Reconcile(ctx, key); err != nil {
		fmt.Println(err)
	}
	m, _ = store.Get(ctx, key)
	fmt.Println(m.Phase, m.Spec.ProviderID)

	store.Delete(key)
	if _, err := c.Reconcile(ctx, key); err != nil {
		fmt.Println(err)
	}
	_, err = store.Get(ctx, key)
	fmt.Println(err)
	for _, i := range cloud.Instances() {
		fmt.Println(i.State, len(i.Disks), "disk")
	}
	// Output:
	// Running memory:///6bdb262b-f2ecc2d52af33f5a-1
	// machine "fleet/a": file does not exist
	// Retained 1 disk
}
