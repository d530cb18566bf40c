// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/rollout/protocol"
)

func updateOnce(ctx context.Context, s LedgerStore, create bool, change func(protocol.Ledger) (protocol.Ledger, error)) (protocol.Ledger, error) {
	check := option.For("rollout.Update", nil)
	check.Require("s", s, "see rollout/kube.NewLedgerStore")
	check.Require("change", change, "what makes the new ledger")
	if err := check.Err(); err != nil {
		return protocol.Ledger{}, err
	}
	l, version, err := s.Load(ctx)
	if err != nil && (!create || !errors.Is(err, fs.ErrNotExist)) {
		return l, fmt.Errorf("loading the ledger: %w", err)
	}
	next, err := change(l)
	if err != nil {
		return l, err
	}
	if version != "" && reflect.DeepEqual(next, l) {
		return l, nil
	}
	if err := errors.Join(next.Validate(), next.Follows(l)); err != nil {
		return l, fmt.Errorf("the new ledger is not valid, and was not stored: %w", err)
	}
	if _, err := s.Store(ctx, next, version); err != nil {
		return l, fmt.Errorf("storing the ledger: %w", err)
	}
	return next, nil
}
