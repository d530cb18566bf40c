// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fields says what a change of a config asks of a node, field by field: whether it is taken up live, needs a reload, a restart or a
// drain first, or is forbidden, and which pools of nodes may make it.
//
// A [Policy] is a document on the node's own disk, read with [Parse]:
//
//	apiVersion: belay.dev/v1alpha1
//	kind: FieldPolicy
//	default: Restart
//	rules:
//	- path: clusterDomain
//	  action: Forbid
//	  why: pods keep the old one until they are made anew
//	- path: cpuManagerPolicy
//	  action: Drain
//	- path: systemReserved.*
//	  action: Drain
//	  pools: [canary, batch]
//	- path: logging
//	  action: Live
//
// # Paths
//
// A path is written as errors write it: names joined by dots, evictionHard.nodefs, names with other characters than letters, digits, dash,
// underscore and slash as JSON strings in brackets, evictionHard["memory.available"], and places in lists from 0, clusterDNS[0]. In a rule
// * stands for any key of a map and [*] for any place in a list. A rule is about its path and all below it. Of several rules that match, the
// one with the most elements counts; of those of one length the one that spells an element out where the other has a star, the leftmost
// element first. No two rules have the same path. What no rule matches has the default.
//
// # What counts as a change
//
// The ends of both documents are compared: texts, numbers, booleans, null, and maps and lists that are empty. What is an end in one document
// only, or another end in the other one, is changed. So a map that comes or goes changes what it holds, and one that is emptied itself, too.
// Lists are compared place by place, so what is put in front moves all that is behind it. null is another
// value than none, and than an empty list. A number that is written in another way is changed.
//
// # Promise
//
//   - [Policy.Decide] is pure. Its answer for two documents is the strongest action of any field that differs.
//   - What it lets through in two steps it lets through in one, and what it forbids is forbidden in any number of steps: paths decide, not values.
//   - Errors name field paths and reasons of the policy, never a value of a config.
//
// # No promise
//
// A policy doesn't know what the configured program does with a field. It is no access control for those who may write to the node's disk.
//
// # Concurrency
//
// A Policy doesn't change; all may be called from several goroutines.
package fields
