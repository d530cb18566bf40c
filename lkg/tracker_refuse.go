// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"context"
	"fmt"
)

// Refuse lists a config as bad because a check said so before the config was ever assigned, with the reason that a start
// would have given. c must be CheckUndecodable or CheckInvalid. A listed config keeps its first reason. Writes: bad-configs.
func (t *Tracker) Refuse(ctx context.Context, r Ref, c Check) error {
	if err := r.validate(); err != nil {
		return err
	}
	e := BadEntry{Ref: r}
	switch c.Outcome {
	case CheckUndecodable:
		e.Reason = reasonLoad(r)
	case CheckInvalid:
		e.Reason = reasonValidate(r)
	default:
		return &FieldError{"outcome", fmt.Sprintf("%q", c.Outcome), "must be undecodable or invalid"}
	}
	leave, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	e.Time, e.Evidence = t.now(), evidence(0, nil, c.Err)
	if !t.s.addBad(e) && !t.dirtyBad {
		return nil
	}
	return t.putBad(ctx, "refusing a config")
}
