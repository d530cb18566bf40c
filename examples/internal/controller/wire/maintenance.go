// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"

	"github.com/belayproject/belay/drain"
	drainkube "github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/drain/maintenance"
)

// maintenanceLease is the name of the Lease by which one process carries out NodeMaintenances.
const maintenanceLease = "node-maintenance"

// runMaintenances carries out NodeMaintenances while this process leads.
func runMaintenances(ctx context.Context, p *Plane) error {
	return p.lead(ctx, maintenanceLease, func(ctx context.Context) error {
		client, err := maintenance.NewClient(p.client)
		if err != nil {
			return err
		}
		r, err := maintenance.New(maintenance.Options{Client: client, Drainer: p.drainer, Cache: p.pods.View()})
		if err != nil {
			return fmt.Errorf("node maintenance: %w", err)
		}
		return ended(ctx, r.Run(ctx))
	})
}

// newLeaseKeeper makes what renews the Leases of held nodes. NodeMaintenances alone ask for that.
func newLeaseKeeper(p *Plane) (drain.LeaseKeeper, error) {
	if !p.s.NodeMaintenance {
		return nil, nil //nolint:nilnil // none is needed
	}
	return drainkube.NewLeaseKeeper(p.core, drainkube.Options{})
}
