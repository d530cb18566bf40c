// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apilist lists the exported API of every public package, one line per name, and keeps the committed listings below
// docs/api true.
//
// A listing is what a reviewer reads when an API changes. Each line gives one exported name with its type:
//
//	const Healthy Verdict = "healthy"
//	var ErrClosed error
//	func Open(string, Options) (*Store, error)
//	method (*Store) Close() error
//	type Options struct
//	type Options struct, Quota int64
//	type Clock interface, Now() time.Time
//
// [Limits] is the ratchet: the number of names of each package, which may only shrink. A name is a constant, variable,
// function or type at the top level, or a method that is declared on an exported type. Fields of structs and methods of
// interfaces are part of their type and do not count. Test kits and v1alpha1 packages are listed and have no limit.
package apilist
