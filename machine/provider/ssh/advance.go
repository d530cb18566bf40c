// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

// errRaced is when somebody else has changed a claim since it was seen.
var errRaced = errors.New("the claim has changed since it was seen")

// errNoFiles is when a step has to be given its files again, with secrets that this call does not have.
var errNoFiles = errors.New("the files of the script are gone: Create or Update sends them again")

// races is how often a call looks again before it gives up.
const races = 10

// retry does something until nobody comes between.
func retry(ctx context.Context, do func() error) error {
	err := errRaced
	for n := 0; n < races && errors.Is(err, errRaced); n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err = do()
	}
	if errors.Is(err, errRaced) {
		return provider.Errorf(provider.Unavailable, "others have changed it %d times meanwhile", races)
	}
	return err
}

// exchange makes a swap on what was seen. The record is that of the sight that comes back.
func (c *core) exchange(ctx context.Context, s sight, w swap) (sight, error) {
	w.expect = s.raw
	a, err := c.ask(ctx, s.host, request{token: w.forbid, swap: &w})
	if err == nil && !a.swapped {
		err = errRaced
	}
	return sight{answer: a, host: s.host}, err
}

// write puts a record in the place of what was seen.
func (c *core) write(ctx context.Context, s sight, next record, w swap) (sight, error) {
	next.Host = s.host.Name
	data, err := next.encode(newID())
	if err != nil {
		return sight{}, err
	}
	w.next = data
	return c.exchange(ctx, s, w)
}

// release takes the claim away.
func (c *core) release(ctx context.Context, s sight, spend string) (sight, error) {
	return c.exchange(ctx, s, swap{spend: spend})
}

func newID() string { return strings.ToLower(rand.Text()) }

// advance goes on with what is recorded until a script runs or nothing is left to do. The record in the sight may be one that is not written yet:
// then it is written with the step that it orders. join is nil where the call has none.
func (c *core) advance(ctx context.Context, s sight, join *provider.Join) (sight, verdict, error) {
	begun := map[phase]bool{}
	for {
		next, v := s.rec.settle(s.answer)
		var err error
		switch {
		case v == underWay || v == settled && next.Phase == s.rec.Phase || v == cut && begun[next.Phase]:
			s.rec = &next
			return s, v, nil
		case next.Phase == free:
			s, err = c.release(ctx, s, s.rec.Token)
			return s, settled, err
		case v == failed:
			code := s.steps[s.rec.Step.ID].code
			if s, err = c.write(ctx, s, next, swap{}); err == nil {
				err = provider.Errorf(classOf(code), "%s", next.Message)
			}
			return s, failed, err
		case v == settled:
			s, err = c.write(ctx, s, next, swap{})
			return s, settled, err
		}
		begun[next.Phase] = true
		if s, err = c.begin(ctx, s, next, join); err != nil {
			return s, v, err
		}
	}
}

// begin begins the step of a record, whose files may be there already.
func (c *core) begin(ctx context.Context, s sight, next record, join *provider.Join) (sight, error) {
	when := ""
	if next.Phase == rebooting {
		when = next.Boot
	}
	if st, ok := s.steps[next.Step.ID]; ok && st.state == stepReady && next.Phase == s.rec.Phase {
		return c.exchange(ctx, s, swap{next: s.raw, start: next.Step.ID, when: when})
	}
	if next.Step.Kind == "" {
		next.Step.Kind = kindOf(next.Phase)
	}
	sp := next.spec
	if next.Phase == updating {
		sp = *next.Next
	}
	if join == nil {
		if next.Step.Kind == bootstrapStep || next.Step.Kind == updateStep {
			return s, errNoFiles
		}
		join = &provider.Join{}
	}
	next.Step.ID = newID()
	files := sp.files(s.host, next.Step, *join, c.bootFile(s.host))
	return c.write(ctx, s, next, swap{put: next.Step.ID, files: files, start: next.Step.ID, when: when})
}

// classOf is that of an exit code of a script.
func classOf(code int) provider.Class {
	switch code {
	case exitUsage, exitConfig:
		return provider.InvalidConfig
	case exitUnavailable, exitTemporary:
		return provider.Unavailable
	case exitNoRight:
		return provider.Unauthorized
	}
	return provider.Internal
}
