// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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

	"github.com/belayproject/belay/machine/provider/providertest"
)

// stopTime is how long running calls may take after a signal.
const stopTime = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fakecloud:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var (
		listen string
		o      = providertest.ServerOptions{Kill: kill}
	)
	c := &cobra.Command{
		Use:           "fakecloud --state DIR",
		Short:         "Serve a cloud for tests on loopback, with its state on disk and faults on demand",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			return serve(c.Context(), o, listen)
		},
	}
	c.Flags().StringVar(&o.Dir, "state", "", "directory that holds all there is; it is made if need be")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "address to listen on: a loopback IP and a port, 0 for any")
	c.Flags().BoolVar(&o.NoSync, "no-sync", false, "don't wait for the disk: the state survives SIGKILL, and not the end of the machine")
	_ = c.MarkFlagRequired("state") // it is there
	return c
}

// serve answers until ctx ends.
func serve(ctx context.Context, o providertest.ServerOptions, listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("--listen %q: %w", listen, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("--listen %q: want a loopback IP, as 127.0.0.1, because there is no authentication", listen)
	}
	cloud, err := providertest.NewServer(o)
	if err != nil {
		return err
	}
	defer cloud.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: cloud, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Printf("http://%s\n", listener.Addr())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return server.Close()
}

// kill ends the process as a crash would.
func kill() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill() // nothing comes after it
	}
}
