// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configsync keeps a node at a config, and no bad config keeps it down.
//
//	package example
//
//	import (
//		"context"
//		"github.com/belayproject/belay/configsync"
//		"github.com/belayproject/belay/lkg"
//	)
//
//	func run[T any](ctx context.Context, o configsync.Options[T], use func(T)) error {
//		syncer, err := configsync.New(ctx, o)
//		if err != nil {
//			return err
//		}
//		active, err := syncer.Bootstrap(ctx, lkg.Exit{})
//		if err != nil {
//			return err
//		}
//		use(active.Config)
//		return syncer.Run(ctx)
//	}
//
// A [Syncer] joins small parts: a [Source] says which config is wanted, a [Fetcher] gets the object, a [Codec]
// decodes it, [Validator]s judge it, a [Store] keeps it, a [Restarter] restarts what is configured, [Probe]s say
// whether it is well, and a [Reporter] tells the world. Which config is used is decided by package lkg, from what is
// on disk alone. A [Steered] has calls in place of a Source, for those who decide themselves which config is wanted
// and when: the agent of a rollout does.
//
// # Promise
//
//   - [Syncer.Bootstrap] makes no network call. It returns a config that passed every check, or an error that names
//     what is wrong with the local baseline (the init config or the built-in defaults). No content of the store changes
//     that.
//   - A config is adopted in this order: the whole object checkpointed, then recorded as current, then a
//     planned-restart marker, then the restart. A kill between any two leaves the old config or the new one, never a
//     reference without payload.
//   - A config that can't be decoded or fails validation is never adopted twice; one that crashes what it configures
//     more often than its threshold during its trial is rejected and rolled back, with the API server up or down.
//   - What [Options].Changes forbids against the last known good config is refused before anything of it is stored; a
//     config that was refused and forgotten is judged anew.
//   - Trouble in finding the wanted config never changes a live process. It is reported.
//   - The status always carries a cause.
//   - Where a word from outside is asked for ([Ack]), no config is promoted without it, and one that waits in vain is
//     left. A watch after the promotion only raises an alarm.
//
// # No promise
//
// One Syncer serves one process on one node; it doesn't pace a fleet (package rollout does). It can't tell a config
// that is valid, healthy and yet unwanted. A payload is not a secret store: ConfigMaps are readable by whoever may
// read them.
//
// # Concurrency
//
// All methods may be called from several goroutines. Bootstrap is called once per start of the thing that is
// configured: once per process where that is the process itself, once per child where a supervisor restarts a child.
//
// # Crash behaviour
//
// Every write goes through the Store and is durable when acknowledged. A start is recorded before anything can fail.
// What can't be recorded isn't acted upon.
package configsync
