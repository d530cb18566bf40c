// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/agent/internal/metrics"
)

// scrapeTimeout bounds each part of a scrape.
const scrapeTimeout = 10 * time.Second

// measure serves metrics until ctx ends. The child goes on without: an address that can't be had is tried again.
func (a *agent) measure(ctx context.Context) {
	if a.s.Metrics == "" {
		return
	}
	for retry := a.s.Retry(); ctx.Err() == nil; retry.Wait(ctx) {
		if err := a.serveMetrics(ctx); err != nil && ctx.Err() == nil {
			a.log.Error(err, "Metrics are not served, trying again", "address", a.s.Metrics)
		}
	}
}

func (a *agent) serveMetrics(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", a.s.Metrics)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler(func() configsync.Status { return a.trouble.amend(a.syncer.Status()) }, a.totals(), a.trouble.drifted))
	server := &http.Server{Handler: mux, ReadTimeout: scrapeTimeout, WriteTimeout: scrapeTimeout, MaxHeaderBytes: 8 << 10}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	return server.Serve(l)
}
