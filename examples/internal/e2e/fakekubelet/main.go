// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	v1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// soon is how many health checks are answered before ExitSoon ends the process.
const soon = 3

func main() {
	config := flag.String("config", "", "file with the KubeletConfiguration")
	var l look
	root := flag.String("root-dir", "", "directory of the state files; empty: there are none")
	flag.StringVar(&l.kubeconfig, "kubeconfig", "", "file with the rights to read the Node")
	flag.StringVar(&l.node, "node-name", "", "the Node")
	flag.StringVar(&l.seen, "seen", "", "file that gets a line about the Node at each start; empty: the Node is not looked at")
	flag.Parse()
	if err := run(*config, *root, l); err != nil {
		klogError("run.go:72", "command failed", err)
		os.Exit(1)
	}
}

func run(path, root string, l look) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := l.note(raw); err != nil {
		return err
	}
	var c v1beta1.KubeletConfiguration
	if err := yaml.UnmarshalStrict(raw, &c); err != nil {
		return err
	}
	for gate, on := range c.FeatureGates {
		switch gate {
		case "ExitSoon", "Sick", "Stubborn", dieWithoutFile, noRuntime, poisonState:
		default:
			return fmt.Errorf("unrecognized feature gate %s=%t", gate, on)
		}
	}
	if err := checkNeeds(&c); err != nil {
		return err
	}
	if err := dependOnMachine(&c); err != nil {
		return err
	}
	if err := bindState(root, &c); err != nil {
		return err
	}
	return serve(&c, raw)
}

// klogError writes an error as a kubelet logs it.
func klogError(place, message string, err error) {
	fmt.Fprintf(os.Stderr, "E%s %7d %s] %q err=%q\n", time.Now().Format("0102 15:04:05.000000"), os.Getpid(), place, message, err)
}

// checkNeeds says what of the machine is missing that a kubelet with that config can't do without.
func checkNeeds(c *v1beta1.KubeletConfiguration) error {
	for _, file := range []string{c.TLSCertFile, c.TLSPrivateKeyFile, c.Authentication.X509.ClientCAFile} {
		if file == "" {
			continue
		}
		if _, err := os.ReadFile(file); err != nil {
			return fmt.Errorf("failed to initialize TLS: %w", err)
		}
	}
	endpoint, ok := strings.CutPrefix(c.ContainerRuntimeEndpoint, "unix://")
	if !ok {
		return nil
	}
	conn, err := net.Dial("unix", endpoint)
	if err != nil {
		return fmt.Errorf("failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint %q: rpc error: "+
			"code = Unavailable desc = connection error: desc = \"transport: Error while dialing: %w\"", c.ContainerRuntimeEndpoint, err)
	}
	return conn.Close()
}

// serve answers until SIGTERM.
func serve(c *v1beta1.KubeletConfiguration, raw []byte) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if c.FeatureGates["Stubborn"] {
		ctx = context.Background()
	}
	port := 10248
	if c.HealthzPort != nil {
		port = int(*c.HealthzPort)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(cmp.Or(c.HealthzBindAddress, "127.0.0.1"), strconv.Itoa(port)))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(c, raw)}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if err := server.Shutdown(context.Background()); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func handler(c *v1beta1.KubeletConfiguration, raw []byte) http.Handler {
	var asked atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/config", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(raw) })
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if c.FeatureGates["ExitSoon"] && asked.Add(1) > soon {
			os.Exit(255)
		}
		if c.FeatureGates["Sick"] {
			http.Error(w, "sick", http.StatusInternalServerError)
		}
	})
	return mux
}
