// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeletpayload says what a kubelet config is to the agent: which object key holds it, how it is decoded, and which
// rules it must keep before a node adopts it.
//
// The rules are the part of the kubelet's own that need neither its feature gates nor the host, so that a mistake in the
// config is refused at once, everywhere, with the field's name. They are not all of the kubelet's rules: a config that keeps
// them can still make the kubelet exit, and that is what the trial is for.
//
// # Promise
//
//   - Nothing is filled in: the decoded config has the zero value where the document says nothing, and a rule about two fields
//     takes the kubelet's own default for the one that is absent.
//   - The document is never encoded again. What the kubelet reads is what was written, byte for byte, unless something is laid around it and
//     the kubelet doesn't merge by itself; see [Text]. What is validated is always the merged result.
//   - Errors name field paths and say what would be right. They never repeat a value.
//
// # No promise
//
// A config without any error here may be refused by the kubelet: unknown feature gates, policies that the host can't hold,
// files that don't exist.
//
// # Concurrency
//
// All functions may be called from several goroutines.
package kubeletpayload
