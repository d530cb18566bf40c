// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/belayproject/belay/machine"
)

// free gives back a slot that nothing needs: one that was taken by a process that died, or for something that was taken back before it was stored. same is false
// if the machine is another one than was decided on: then it is to be decided anew.
func (p *pass) free(ctx context.Context, d machine.Decision) (same bool, err error) {
	if p.c.o.Budget == nil || !p.idle(d) && d.Action.Kind != machine.RemoveFinalizer || p.mem.freed && p.mem.took == nil {
		return true, nil
	}
	loan, there, err := p.loan(ctx)
	if err != nil || !there {
		return err == nil, err
	}
	// It was there before this look: if nothing needs it by that, nothing does. What is taken after it is another loan.
	if same, err = p.refresh(ctx); errors.Is(err, fs.ErrNotExist) {
		return true, nil // it is freed when the machine is forgotten
	} else if err != nil || !same {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.c.o.CallTimeout)
	defer cancel()
	if err := p.c.o.Budget.Free(ctx, p.m.Key.String(), p.m.UID, loan); err != nil {
		return false, fmt.Errorf("free the slot of machine %q: %w", p.m.Key, err)
	}
	p.mem.took, p.mem.freed = nil, true
	return true, nil
}

// idle means that nothing is done that needs a slot, and that nothing is held up half-way.
func (p *pass) idle(d machine.Decision) bool {
	frozen := d.Status.Failure != nil && d.Status.Failure.Reason == machine.ReasonDuplicateProviderID || p.m.Spec.Paused
	nothing := d.Action.Kind == machine.None || d.Action.Kind == machine.RemoveNode && d.Action.Token != "" // of an instance that has ended
	return nothing && d.Status.Update == nil && d.Status.Release == nil && !frozen
}

// loan is what the machine has taken for its own changes, by the budget itself.
func (p *pass) loan(ctx context.Context) (loan string, there bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.c.o.CallTimeout)
	defer cancel()
	if loan, there, err = p.c.o.Budget.Loan(ctx, p.m.Key.String(), p.m.UID); err != nil {
		return "", false, fmt.Errorf("look for the slot of machine %q: %w", p.m.Key, err)
	}
	if !there || machine.RemedyLoan(loan) { // that is given back by the health check
		p.mem.took, p.mem.freed = nil, true
		return "", false, nil
	}
	return loan, there, nil
}
