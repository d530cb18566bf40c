// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belayproject/belay/machine"
)

// left is how many more machines health checks may disturb.
func (p *groupPass) left() int {
	if b, ok := p.g.o.Budget.(Left); ok {
		return b.Left(p.ctx)
	}
	return max(0, 1-len(p.needed()))
}

// needed are the machines of attempts that have a slot, by UID, as far as the checks were read or stored.
func (p *groupPass) needed() map[string]machine.Key {
	all := map[string]machine.Key{}
	for _, h := range p.group.Checks {
		for _, a := range h.Status.Attempts {
			if a.Loan() != "" {
				all[a.UID] = a.Key
			}
		}
	}
	return all
}

// finished are the attempts whose machines have no slot any more.
func finished(was, is machine.HealthStatus) (all []machine.Attempt) {
	for _, a := range was.Attempts {
		stays := slices.ContainsFunc(is.Attempts, func(b machine.Attempt) bool { return b.UID == a.UID && b.Loan() != "" })
		if a.Loan() != "" && !stays {
			all = append(all, a)
		}
	}
	return all
}

// granted is the decision with what the budget agrees to: it is asked before anything is stored, so that what waits leaves no trace. A budget that can't be asked
// agrees to nothing, and the rest goes on.
func (p *groupPass) granted(v machine.HealthView) (machine.HealthDecision, error) {
	var errs []error
	asked := map[string]bool{}
	v.Refused = map[string]string{}
	for {
		d := machine.DecideHealth(v)
		refused := len(v.Refused)
		for _, r := range d.Remedies {
			under := slices.ContainsFunc(v.Check.Status.Attempts, func(a machine.Attempt) bool { return a.ID() == r.ID })
			if asked[r.UID] || under {
				continue
			}
			asked[r.UID] = true
			blocked, err := p.borrow(r)
			if err != nil {
				errs, blocked = append(errs, err), err.Error()
			}
			if blocked != "" {
				v.Refused[r.UID] = blocked
			}
		}
		if len(v.Refused) == refused {
			return d, errors.Join(errs...)
		}
	}
}

// borrow charges the budget for a remedy that disturbs its machine; what the remedy before had becomes its own. blocked is why it can't be.
func (p *groupPass) borrow(r machine.Remedy) (blocked string, err error) {
	m, there := p.findMachine(r.Choice)
	if p.g.o.Budget == nil || r.Loan == "" || !there {
		return "", nil
	}
	loan, has, err := p.loan(m.Key, m.UID)
	switch {
	case err != nil || has && loan == r.Loan:
		return "", err
	case has && !machine.RemedyLoan(loan):
		return "the machine has a slot for a change of its own", nil
	}
	p.lent(m.Key, m.UID, true) // before: that there is no answer does not mean that there is no slot
	done := false
	err = p.call(func(ctx context.Context) (err error) {
		ref := nodeOf(m)
		done, blocked, err = p.g.o.Budget.Take(ctx, m.Key.String(), m.UID, r.Loan, ref.Name, ref.UID)
		return err
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("take a slot for machine %q: %w", m.Key, err)
	case done:
		return "", nil
	}
	p.lent(m.Key, m.UID, has)
	return cmp.Or(blocked, "it has no slot now"), nil
}

// loan is what a machine has, by the budget itself.
func (p *groupPass) loan(key machine.Key, uid string) (loan string, there bool, err error) {
	err = p.call(func(ctx context.Context) (err error) {
		loan, there, err = p.g.o.Budget.Loan(ctx, key.String(), uid)
		return err
	})
	if err != nil {
		return "", false, fmt.Errorf("look for the slot of machine %q: %w", key, err)
	}
	return loan, there, nil
}

// lent remembers that a machine may have a slot of a remedy, or that it has none.
func (p *groupPass) lent(key machine.Key, uid string, is bool) {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	if k := (loanKey{p.namespace, uid}); is {
		p.g.loans[k] = key
	} else {
		delete(p.g.loans, k)
	}
}

// giveBack frees what remedies of a machine have, whichever of them it is: only one at a time has anything.
func (p *groupPass) giveBack(key machine.Key, uid string) error {
	if p.g.o.Budget == nil {
		return nil
	}
	loan, has, err := p.loan(key, uid)
	if err != nil {
		return err
	}
	if has && machine.RemedyLoan(loan) {
		err := p.call(func(ctx context.Context) error { return p.g.o.Budget.Free(ctx, key.String(), uid, loan) })
		if err != nil {
			return fmt.Errorf("free the slot of machine %q: %w", key, err)
		}
	}
	p.lent(key, uid, false)
	return nil
}

// reclaim gives back slots that no attempt has: of a process that died before it had stored the attempt, and of checks that were deleted.
func (p *groupPass) reclaim() error {
	if p.g.o.Budget == nil {
		return nil
	}
	var errs []error
	var orphans []machine.Choice
	for _, c := range p.suspects() {
		loan, has, err := p.loan(c.Key, c.UID)
		switch {
		case err != nil:
			errs = append(errs, err)
		case has && machine.RemedyLoan(loan):
			orphans = append(orphans, c)
		default:
			p.lent(c.Key, c.UID, false)
		}
	}
	if len(orphans) > 0 {
		// They were there before this look: what no attempt has by that, none has.
		if err := p.read(true); err != nil {
			return err
		}
	}
	needed := p.needed()
	for _, c := range orphans {
		if _, is := needed[c.UID]; !is {
			errs = append(errs, p.giveBack(c.Key, c.UID))
		}
	}
	err := errors.Join(errs...)
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	p.g.swept[p.namespace] = p.g.swept[p.namespace] || err == nil
	return err
}

// suspects are machines without an attempt that may have a slot: those that this process knows of, and, once, all.
func (p *groupPass) suspects() []machine.Choice {
	needed := p.needed()
	may := map[string]machine.Key{}
	p.g.mu.Lock()
	for k, key := range p.g.loans {
		if k.namespace == p.namespace {
			may[k.uid] = key
		}
	}
	for uid, key := range needed {
		p.g.loans[loanKey{p.namespace, uid}] = key
	}
	swept := p.g.swept[p.namespace]
	p.g.mu.Unlock()
	for _, m := range p.group.Machines {
		if !swept {
			may[m.UID] = m.Key
		}
	}
	var all []machine.Choice
	for uid, key := range may {
		if _, is := needed[uid]; !is {
			all = append(all, machine.Choice{Key: key, UID: uid})
		}
	}
	slices.SortFunc(all, func(a, b machine.Choice) int { return strings.Compare(a.UID, b.UID) })
	return all
}
