// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"context"
	"errors"
	"testing"

	"github.com/belayproject/belay/internal/testenv"
)

// An auditor that sees all comes to the newest version that etcd has, also after etcd was away; one that sees nothing is told.
func TestFollowerThatSeesNothingIsTold(t *testing.T) {
	t.Parallel()
	env, err := testenv.New(t.Context(), testenv.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, env.Close()) })
	s := &stage{t: t, env: env, bare: true, audit: newAuditor(1)}
	if err := s.lags(t.Context(), new(int64)); !errors.Is(err, errBlind) {
		t.Errorf("nobody follows: got %v, want %v", err, errBlind)
	}
	s.follow()
	s.looked()
	must(t, env.Server(testenv.Etcd).Kill())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, env.Server(testenv.Etcd).Start(ctx))
	must(t, env.APIServer().Start(ctx))
	s.looked()
}
