// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// settle is how long changes of a namespace are collected before it is looked at: machines come in crowds.
const settle = 200 * time.Millisecond

// GroupLoop is what [RunGroups] keeps going. Machines are run by [Run].
type GroupLoop struct {
	Controller *controller.GroupController
	Groups     Groups
	Machines   Machines
	// Nodes wake the namespaces of their machines; nil is none.
	Nodes Nodes
	// Workers is how many namespaces are worked at at once; 0 is 8.
	Workers int
}

// RunGroups reconciles each namespace when something in it has changed, until ctx ends, or returns at once why it can't. Call it once.
func RunGroups(ctx context.Context, l GroupLoop) error {
	check := option.For("machine/kube.RunGroups", nil)
	check.Require("GroupLoop.Controller", l.Controller, "see machine/controller.NewGroups")
	check.Require("GroupLoop.Groups", l.Groups, "see NewGroups")
	check.Require("GroupLoop.Machines", l.Machines, "see NewMachines")
	if err := check.Err(); err != nil {
		return err
	}
	queue := newQueue[string]()
	add := func(namespace string) { queue.AddAfter(namespace, settle) }
	machines, groups := l.Machines.asStore(), l.Groups.asStore()
	if err := machines.watch(func(k machine.Key) { add(k.Namespace) }); err != nil {
		return err
	}
	if l.Nodes != nil {
		ofToken := func(token string) { machines.ofToken(token, func(k machine.Key) { add(k.Namespace) }) }
		unwatch, err := l.Nodes.asStore().watch(ofToken)
		if err != nil {
			return err
		}
		defer unwatch()
	}
	synced := func() bool { return l.Machines.Synced() && l.Groups.Synced() }
	return looped(ctx, queue, func(ctx context.Context) error { return l.Groups.Run(ctx, add) }, synced, func(ctx context.Context, wg *sync.WaitGroup) {
		for range workers(l.Workers) {
			wg.Go(func() { work(ctx, queue, refusing(l.Controller.Reconcile, groups.refuse), "namespace") })
		}
	})
}
