// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resume has the watches of reflectors and informers go on by themselves from where they were, so that a fleet does not list again when
// connections break.
//
// A reflector of client-go lists again after each failure of a watch that it does not know, and after each that ended within a second and brought nothing. Behind a
// middlebox that cuts idle connections, that is most of them, and so it is when the API server ends a watch at once because it has just forgotten the events
// from there on: it does that without a word, and says 410 to the next one. With this package a list follows only a word of the API server: that it has
// forgotten where the watch was (410), or an error of its own.
//
// It does not promise that no event is lost to a reader that stops: like any watch, it is of one process. A watch ends, at once, with its context, or when it is
// stopped, also while it waits for an API server that is away.
package resume
