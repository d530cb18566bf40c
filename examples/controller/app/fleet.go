// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/examples/internal/controller/page"
	"github.com/belayproject/belay/examples/internal/controller/settings"
	"github.com/belayproject/belay/examples/internal/controller/wire"
)

// fleet is the fleet page with its address.
type fleet struct {
	listener net.Listener
	hub      *page.Hub
	plane    *wire.Plane
}

// newFleet is nil where no page is asked for.
func newFleet(s *settings.Run, plane *wire.Plane) (*fleet, error) {
	if s.Page == "" {
		return nil, nil
	}
	// Each replica renews or asks for its Leases eight times in that time, whatever else is quiet.
	silence := max(time.Minute, s.Lease)
	hub, err := page.New(page.Options{Source: plane, Hosts: s.PageHosts, Name: cmp.Or(s.PageName, s.Machines.Cluster, plane.Host()), Silence: silence})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", s.Page)
	if err != nil {
		return nil, &settings.FlagError{Flag: "page-bind-address", Value: s.Page, Want: "must be an address that is free: " + err.Error()}
	}
	return &fleet{listener, hub, plane}, nil
}

// run answers until ctx ends, whether this process leads or not.
func (f *fleet) run(ctx context.Context) error {
	klog.FromContext(ctx).Info("Serving the fleet page", "page", "http://"+f.listener.Addr().String()+"/")
	wake, stop := f.plane.Changes()
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.hub.Run(ctx, wake) })
	g.Go(func() error { return serve(ctx, f.listener, f.hub.Handler()) })
	return g.Wait()
}
