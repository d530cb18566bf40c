// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informer lets the packages of belay read informers that an embedder runs, so that a process has one watch of each
// kind of object.
//
// # Promise
//
//   - An informer of an embedder is neither started nor stopped, and its transform and its handler of watch errors stay its
//     owner's. Indices and handlers are added to it; handlers are removed at the end of a Run.
//   - An informer that is missing, has stopped, or gives no access to its store is an [Error] that names the option.
//
// # Concurrency
//
// All functions may be called from several goroutines, before and after the informer was started.
package informer
