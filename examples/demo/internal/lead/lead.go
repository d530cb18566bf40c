// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/internal/proc"
)

const (
	callTimeout = 5 * time.Second
	grace       = 20 * time.Second // that it has to hand its lead over
	tailBytes   = 2 << 10
	maxAnswer   = 4 << 20
	// policy has an empty node count as drained sooner than in production.
	policy = "settle: 500ms\n"
	// requests counts what it asks of the API server, leader says by which Lease it leads.
	requests, leader = "belay_api_requests_total", "belay_leader"
)

// Options of a Controller. All are required.
type Options struct {
	// Program is the reference controller, Kubeconfig what it talks to the API server with.
	Program, Kubeconfig string
	// Domain is the disruption domain that it looks after, Namespace that of its Leases.
	Domain, Namespace string
	// Page is the address of the fleet page that is wanted. Where it is taken, another port is used.
	Page string
	// Dir is where its log lies.
	Dir string
}

// A Controller is one that runs.
type Controller struct {
	// Page is the address of the fleet page.
	Page string

	o       Options
	metrics string
	process *proc.Process
}

// Start starts the controller. It does not lead yet.
func Start(o Options) (*Controller, error) {
	listen, err := free("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	page, err := free(o.Page)
	if err != nil {
		return nil, err
	}
	c := &Controller{o: o, Page: "http://" + page + "/", metrics: "http://" + listen + "/metrics"}
	log, err := os.Create(c.log())
	if err != nil {
		return nil, fmt.Errorf("making the log of the controller: %w", err)
	}
	defer log.Close() // the controller has its own handle
	if err := os.WriteFile(c.policy(), []byte(policy), 0o600); err != nil {
		return nil, fmt.Errorf("writing the drain policy: %w", err)
	}
	cmd := exec.Command(o.Program, "--kubeconfig="+o.Kubeconfig, "--domains="+o.Domain, "--namespace="+o.Namespace,
		"--listen="+listen, "--page-bind-address="+page, "--rate=200", "--lease-duration=60s", "--drain-policy="+c.policy())
	cmd.Stdout, cmd.Stderr = log, log
	c.process, err = proc.Start("the controller", cmd)
	return c, err
}

// free is an address that nobody listens on: the wanted one, or another port. Another process may still take it.
func free(wanted string) (string, error) {
	l, err := net.Listen("tcp", wanted)
	if host, _, e := net.SplitHostPort(wanted); err != nil && e == nil {
		l, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return "", fmt.Errorf("looking for a free address: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// Leads reports whether it leads.
func (c *Controller) Leads(ctx context.Context) bool {
	text, err := c.scrape(ctx)
	return err == nil && sum(text, leader, "rollout-"+c.o.Domain) == 1
}

// Requests is how many it has sent to the API server so far.
func (c *Controller) Requests(ctx context.Context) (int64, error) {
	text, err := c.scrape(ctx)
	return sum(text, requests, ""), err
}

// sum adds up the series of a metric whose labels have a text.
func sum(text, metric, label string) (n int64) {
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), "} ")
		if !ok || !strings.HasPrefix(name, metric+"{") || !strings.Contains(name, label) {
			continue
		}
		if f, err := strconv.ParseFloat(value, 64); err == nil {
			n += int64(f)
		}
	}
	return n
}

func (c *Controller) scrape(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.metrics, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("reading the metrics of the controller: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("reading the metrics of the controller: it answers %s", response.Status)
	}
	return string(text), err
}

// Ended returns nil while it runs.
func (c *Controller) Ended() error { return c.process.EndError() }

// Stop has it hand its lead over and end.
func (c *Controller) Stop(ctx context.Context) error { return c.process.Stop(ctx, grace) }

func (c *Controller) policy() string { return filepath.Join(c.o.Dir, "drain-policy.yaml") }

func (c *Controller) log() string { return filepath.Join(c.o.Dir, "controller.log") }

// LogTail is the end of its log.
func (c *Controller) LogTail() string {
	text, err := os.ReadFile(c.log())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-tailBytes):]))
}
