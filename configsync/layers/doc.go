// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layers lays configs over one another, from the weakest to the strongest, and says of each field which layer it is from: built-in
// defaults, the init config of the node, the config that nodes share, the node's own overlay, flags.
//
// # Merge rules
//
// They are those of a JSON merge patch (RFC 7396), as a kubelet has them for its drop-ins. Maps are merged key by key. All else is replaced as
// a whole: texts, numbers, booleans, lists, and a map by what is no map. So a list of a stronger layer is the list; there is no way to add to
// one. null takes away what is below, a map or a list too, and takes a field back to unset; where nothing is below it says nothing. That holds
// for the maps in a list too. Of the weakest layer that says anything, null is a value. An empty list is an empty list, and stays one. An empty
// map changes nothing of a map below it. What a layer doesn't name is that of the layers below. apiVersion and kind must be the same in all
// layers that name them.
//
// # Promise
//
//   - Where one layer alone says anything, the result is its document, byte for byte: comments, order and all.
//   - Else the result is one JSON document with the keys in order. Equal layers give equal bytes.
//   - The result passes the gate that each layer has passed: no two keys of a map differ in case only.
//   - Every field of the result has one origin; see [Merged].
//   - [Codec] has the merged result decoded, and so validated, never a layer alone.
//   - Errors name layers, lines and field paths, never a value.
//
// # No promise
//
// The result may hold what no layer had: two layers that are good can be bad together, which is why the result is what must be validated.
//
// # Concurrency
//
// All functions are pure and may be called from several goroutines.
package layers
