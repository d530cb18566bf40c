// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package signed has a node use only configs that somebody signed whose key lies on the node's own disk.
//
// A signature is one line, "ID SIGNATURE", in the entry [Entry] of the object: the name of the key, a space, and an Ed25519 signature in
// standard base64. There may be several lines, by several keys, and lines that begin with #. What is signed is [Message]: a context string and the
// digest of all other entries, so the limits of the trial are signed with the config. [Sign] makes a line, and so does openssl:
//
//	openssl pkeyutl -sign -rawin -inkey release.pem -in message | base64 -w0
//
// Keys are PEM files of public keys, each named by its ID and .pem, in one directory that [Load] reads. For a new key, lay it beside the
// old one on all nodes, sign with it, and take the old one away when no node goes back to what the old one signed.
//
// # Promise
//
//   - An object is good if one line is a signature by the key that it names. No other entry of it is looked at before, and nothing is decoded.
//   - As an Inspector of configsync.Options it is asked about each object when it is fetched, before anything is stored, and at each load. The
//     last known good config needs its keys, and no server. The local config needs no signature.
//   - Without a key nothing is good. Keys come from the directory alone, never from the object, the source or a server.
//   - Errors name the IDs of keys, never data or a signature.
//
// # No promise
//
// A signature says who made a config, not for which node or when: an old config that was signed is still good, and so it is under another name. To
// take a key away revokes all that it signed, also a last known good config; the node then goes back further. Who may write to the
// directory decides what the node runs.
//
// # Concurrency
//
// [Keys] don't change; all may be called from several goroutines.
package signed
