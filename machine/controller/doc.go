// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller carries out what package machine decides: machine by machine, over any store, with one provider.
//
// A [Controller] decides nothing itself. [Controller.Reconcile] reads one machine, has github.com/belayproject/belay/machine.Decide say what comes
// next, stores what has to be stored, acts, and goes on until there is something to wait for. [Controller.Survey] asks the provider for its list, once
// a period for all machines: it notices instances that are gone, and finds those that nobody owns.
//
// # Promise
//
//   - Any number of controllers may work on the same machines, be killed at any line, be frozen and thawed: there is one instance of each
//     machine, and nothing is leaked. Leader election saves work; nothing here rests on it.
//   - A provider is asked for an effect only after the machine was read from the store itself or written to it in the same pass, never on a cache.
//   - In steady state nothing is written, and the provider has one List a period.
//   - An instance that nobody owns is reported, and nothing is done about it but what [Options].Orphans says.
//   - Gates are asked before a machine is disturbed, and again just before the first step of its end that can't be undone; never after that.
//   - Machines of the control plane are updated and replaced one by one, whatever the budget allows, and none that works while another one does not. [Options].Backup
//     comes before each of these changes, once for each.
//
// # No promise
//
// Where the store's clock jumps, timeouts may come early or late. Between two writes what is only shown may be late by [Options].ShowEvery.
//
// # Concurrency
//
// Reconcile may be called concurrently for different machines; calls for the same one wait for each other. Calls of the parts come from the caller's
// goroutine, each with a deadline of [Options].CallTimeout.
//
// # Crash behaviour
//
// A Controller keeps nothing that it could not lose: when the provider may be called again after a failure, and what its last list said.
package controller
