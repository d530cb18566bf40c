// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command configsync measures one decision about a node's config, lkg.Decide, beside the least that must happen before any decision
// can be made: reading and decoding the records that it rests on, here from memory, so that no disk helps ours. It prints a line a
// figure; the bar says that deciding costs no more than a tenth of reading. The exit code is 1 where a line is short.
package main
