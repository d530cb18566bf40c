// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watch has the list and watch set-ups of this module: informers of unstructured objects, reflectors with a backoff,
// and watches of a single object. Their watches resume by themselves, so that a fleet does not list again when connections
// break.
//
// A reflector of client-go lists again after each watch error that it does not know, and after each watch that ended within a
// second without an event. Behind a middlebox that cuts idle connections, that is most watches. It is also so when the API
// server ends a watch because it has just compacted the events from there on: it ends that watch silently, and answers 410 to
// the next one. With this package only an answer of the API server causes a list: 410 (the resource version is compacted), or
// another error of its own.
//
// A watch ends at once when its context ends or when it is stopped, also while it waits for an API server that is away.
// Events are lost to a reader that stops: as with any watch, its place is in the memory of one process.
package watch
