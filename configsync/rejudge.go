// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"

	"github.com/belayproject/belay/lkg"
)

// perBinary is a proof whose answers depend on a program of the node, such as the installed kubelet.
type perBinary interface{ ForEachBinary() bool }

// judgeAgain asks the proofs that depend on the node's program about the configs that are no longer on trial, before the
// program is started: it may have been replaced. A refusal holds for this start. A proof that is undecided says
// nothing: a good config is not left for that.
func (b *book[T]) judgeAgain(ctx context.Context, st *lkg.State) {
	var asked []Inspector
	for _, p := range b.s.o.Proofs {
		if own, ok := p.(perBinary); ok && own.ForEachBinary() {
			asked = append(asked, p)
		}
	}
	if len(asked) == 0 {
		return
	}
	for _, r := range []lkg.Ref{st.LastKnownGood, st.Previous} {
		p := page[T]{}
		if !r.IsLocal() {
			p = b.page(ctx, r)
		}
		if p.obj.Data == nil || p.check.Outcome != lkg.CheckOK {
			continue
		}
		if c := inspected(ctx, asked, b.s.keyFor(r.Key), p.obj); c.Outcome == lkg.CheckInvalid {
			p.check = c
			b.enter(r, p)
		}
	}
}
