// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/belayproject/belay/examples/internal/controller/metrics"
	"github.com/belayproject/belay/examples/internal/controller/page"
	"github.com/belayproject/belay/examples/internal/controller/settings"
	"github.com/belayproject/belay/examples/internal/controller/wire"
)

// The first argument of a process of this test binary that is no test. What follows are the arguments of a container.
const (
	asController = "be-a-controller"
	asAgent      = "be-an-agent"
	asProvider   = "be-a-provider"
)

// child runs this process as what its arguments say, if it is no test, until it is asked to stop.
func child(args []string) (code int, is bool) {
	if len(args) < 2 {
		return 0, false
	}
	be := map[string]func(context.Context, []string) error{
		asController: runController, asProvider: runProvider,
		asAgent: func(ctx context.Context, args []string) error { return runAgent(ctx, args, newBox(&atomic.Bool{})) },
	}[args[1]]
	if be == nil {
		return 0, false
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := be(ctx, args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// runController is examples/controller with the arguments of a container.
func runController(ctx context.Context, args []string) error {
	var s settings.Run
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	s.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	m := metrics.New()
	plane, err := wire.New(&s, m, wire.Parts{})
	if err != nil {
		return err
	}
	hub, err := page.New(page.Options{Source: plane})
	if err != nil {
		return err
	}
	wake, stop := plane.Changes()
	defer stop()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := plane.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return plane.Run(ctx) })
	g.Go(func() error { return hub.Run(ctx, wake) })
	g.Go(func() error { return serve(ctx, s.Listen, mux) })
	g.Go(func() error { return serve(ctx, s.Page, hub.Handler()) })
	return g.Wait()
}

// serve answers on an address until ctx ends.
func serve(ctx context.Context, address string, h http.Handler) error {
	server := &http.Server{Addr: address, Handler: h, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
