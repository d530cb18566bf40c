// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"os"

	"github.com/belayproject/belay/configsync/restart/systemd"
)

// checkUnit warns where this agent's own unit would stay down after it has ended. Outside systemd there is nothing to
// say.
func (a *agent) checkUnit(ctx context.Context) {
	if os.Getenv("INVOCATION_ID") == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	unit, err := systemd.Own(ctx, systemd.Options{})
	if err != nil {
		a.log.V(2).Info("The own unit is not known", "why", err)
		return
	}
	policy, err := unit.Policy(ctx)
	if err != nil {
		a.log.V(2).Info("The own unit's restart policy is not known", "unit", unit.Name(), "why", err)
		return
	}
	for _, err := range []error{policy.After(0), policy.After(1), policy.Endless()} {
		if err != nil {
			a.log.Error(err, "Node would stay down")
		}
	}
}
