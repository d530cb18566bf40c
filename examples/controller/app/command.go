// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	drainsettings "github.com/belayproject/belay/examples/internal/drain/settings"

	"github.com/belayproject/belay/examples/internal/controller/metrics"
	"github.com/belayproject/belay/examples/internal/controller/settings"
	"github.com/belayproject/belay/examples/internal/controller/wire"
	"github.com/belayproject/belay/examples/internal/logging"
)

// headerTime bounds the header of a request, and the end of those that run when the process stops.
const headerTime = 5 * time.Second

// Run executes a command of NewCommand with the arguments of this process until it ends or SIGTERM or SIGINT arrives. It prints the
// error and returns the exit code.
func Run(c *cobra.Command) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := c.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		return 1
	}
	return 0
}

// NewCommand makes the command of the controller, with parts of the caller's own. Where the options can't be used, the command fails with an
// error that says so whatever its arguments are.
func NewCommand(options ...Option) *cobra.Command {
	var own parts
	for _, add := range options {
		add(&own)
	}
	var s settings.Run
	begin := func() (end func(), err error) { return func() {}, nil }
	c := &cobra.Command{
		Use:           "controller [flags]",
		Short:         "Carry out the rollouts of disruption domains, never over their caps",
		Version:       version.Get().GitVersion,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.Validate(); err != nil {
				return fmt.Errorf("the command line is wrong\n%w", err)
			}
			end, err := begin()
			if err != nil {
				return fmt.Errorf("the command line is wrong\n%w", err)
			}
			defer end()
			return run(own.context(c.Context()), &s, own.wire)
		},
	}
	c.SetGlobalNormalizationFunc(cliflag.WordSepNormalizeFunc)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return drainsettings.ParseError(err) })
	s.AddFlags(c.Flags())
	if own.log == nil {
		begin = logging.AddFlags(c.Flags())
	}
	return own.problems.Command(c)
}

// run leads what nobody else leads, and answers, until ctx ends.
func run(ctx context.Context, s *settings.Run, own wire.Parts) error {
	m := metrics.New()
	plane, err := wire.New(s, m, own)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return &settings.FlagError{Flag: "listen", Value: s.Listen, Want: "must be an address that is free: " + err.Error()}
	}
	fleet, err := newFleet(s, plane)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	klog.FromContext(ctx).Info("Started controller", "version", version.Get().GitVersion, "domains", s.Domains, "listen", listener.Addr().String())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return plane.Run(ctx) })
	g.Go(func() error { return serve(ctx, listener, answers(m, plane)) })
	if fleet != nil {
		g.Go(func() error { return fleet.run(ctx) })
	}
	return g.Wait()
}

// answers are those to questions about this process.
func answers(m *metrics.Set, plane *wire.Plane) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := plane.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	return mux
}

// serve answers until ctx ends, and with it the requests that are under way.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTime, BaseContext: func(net.Listener) context.Context { return ctx }}
	defer context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), headerTime)
		defer cancel()
		_ = server.Shutdown(ctx) // what it can't end ends with the process
	})()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
