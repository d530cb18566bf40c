// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import "github.com/belayproject/belay/rollout/protocol"

// DefaultOrder is the order of a [Policy] without one.
var DefaultOrder = defaultOrder

// Of is the owner of a node.
func (o *Owners) Of(uid, rollout string, l protocol.Ledger) (Owner, bool) {
	return o.ownerOf(uid, rollout, l)
}
