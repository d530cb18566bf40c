// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package file takes the wanted config from a directory: for nodes without an API server, for static nodes, and for a ConfigMap
// that is mounted into an agent's pod. It also reads the init config that a node was provisioned with.
//
// # Promise
//
// Each file of the directory is an entry whose key is the file's name, as in a mounted ConfigMap; names with a leading dot are
// passed over. A directory is read as a whole: while its files are being changed, no mixture of old and new is returned. Of a
// mounted ConfigMap, which switches its versions by the link "..data", one version is read. No symbolic link is followed that leads
// out of the directory, and no file that isn't regular is opened. What is read is bounded. A directory that doesn't exist is
// missing; one without entries asks for the local config.
//
// # No promise
//
// Files that are written in place, slowly, can be read half-written if they look the same twice: write a new file and rename it.
// In the same way a directory whose last file is removed before the new one is there asks for the local config for that while. To
// change several files together, change a link: the directory's own name may be one.
// Changes are found by looking every few seconds, as that works on every file system.
//
// # Concurrency and crashes
//
// A [Source] keeps nothing between calls and may be used from several goroutines.
package file
