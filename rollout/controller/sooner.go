// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"

	"github.com/belayproject/belay/rollout/protocol"
)

// cuts bounds how many passes in a row are cut short. The one after them goes to its end, whatever ends meanwhile.
const cuts = 3

// errSooner means that a pass was cut short: an attempt has ended, so that its place can be given to the next node.
var errSooner = errors.New("an attempt has ended since the shadows were read")

// sooner reports whether the pass is to begin anew, before it goes on to what nobody waits for but nodes that have their slots: an attempt has ended
// that was not over when the shadows were read. since is how many writes there were before the last step: after one without a write it is not looked for, so
// that each pass gets something done.
func (p *pass) sooner(since int) bool {
	if p.writes == since || p.c.mind.cuts >= cuts {
		return false
	}
	open := p.flying[:0]
	for i := range p.ledger.Slots {
		slot := &p.ledger.Slots[i]
		if n := p.find(slot.UID); n != nil && n.shadow != nil && !Ended(n.shadow.Shadow, slot.Attempt) {
			open = append(open, *slot)
		}
	}
	p.flying = open
	return len(open) > 0 && p.c.o.Shadows.Ended(open)
}

// write is a call that writes.
func (p *pass) write(f func(context.Context) error) error {
	p.writes++
	return p.call(f)
}

// cutShort takes note of how a try of a pass has ended, and reports whether it was cut short.
func (m *mind) cutShort(err error) bool {
	switch {
	case errors.Is(err, errSooner):
		m.cuts++
		return true
	case !errors.Is(err, errAgain):
		m.cuts = 0
	}
	return false
}

// Ended reports whether a version of a shadow shows that its agent has ended an attempt, in whatever way, or a later one.
func Ended(sh protocol.Shadow, k protocol.Attempt) bool {
	return sh.Report.Known && sh.Report.Phase.AtRest() && sh.Report.Attempt >= k
}
