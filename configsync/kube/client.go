// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/option"
)

const (
	// FieldManager owns the fields that the reporters apply: the ConfigOK condition of a Node, and the status of a NodeConfig.
	FieldManager = "belay-configsync"
	// maxResponse is the largest answer that is read from the API server, in bytes. A ConfigMap is at most 1 MiB of data.
	maxResponse = configsync.MaxObject
	// defaultTimeout bounds each call where [Options] has no other.
	defaultTimeout = 10 * time.Second
	// defaultRetryMax bounds the pause between watches where [Options] has no other.
	defaultRetryMax = 30 * time.Second
)

// Options are common to the parts of this package. The zero value is the usual choice.
type Options struct {
	// Timeout bounds each call of the API server, retries included. Zero means 10 seconds.
	Timeout time.Duration
	// RetryMax is the longest pause, but for as much again of jitter, before a watch that broke is tried again. A node hears of a
	// change so much later after the API server was away. Zero means 30 s.
	RetryMax time.Duration
	// Reread is for how long a reporter to a Node takes what the API server has acknowledged for what it holds, and does not read the Node again to find out that
	// there is nothing to write. Zero means that it reads each time. Where a fleet reports again and again ([configsync.Options].Resync), that is most of what nodes
	// at rest ask for; in return, what somebody else makes of the report is put right that much later, or with the next news.
	Reread time.Duration
	// NodeConfigs is an informer of unstructured NodeConfigs that the process runs already, of that of the node or of all.
	// [NodeConfigSource] and its StatusReporter use it instead of a watch of the one NodeConfig. Nil means that watch.
	NodeConfigs Informer
	// Now is the wall clock of the times that are written for people. Nil means time.Now. Nothing is decided by it.
	Now func() time.Time
}

// NewClient returns a client for the parts of this package. It reads no more than [configsync.MaxObject] bytes of any
// answer but a watch's. A timeout in config or httpClient isn't used, as it would also end watches: each call has its
// own. Neither is changed. The httpClient may be nil: then the connections are those of config. GetHTTPClient of a
// controller-runtime manager returns one that shares its connections.
func NewClient(config *rest.Config, httpClient *http.Client) (dynamic.Interface, error) {
	check := option.For("configsync/kube.NewClient", nil)
	check.Require("config", config, "see rest.InClusterConfig or clientcmd.BuildConfigFromFlags")
	if err := check.Err(); err != nil {
		return nil, err
	}
	config = dynamic.ConfigFor(config) // a copy that says who asks
	config.Timeout = 0
	over, err := boundedClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	client, err := dynamic.NewForConfigAndClient(config, over)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}

// boundedClient copies httpClient, or makes one for config where that is nil.
func boundedClient(config *rest.Config, httpClient *http.Client) (*http.Client, error) {
	if httpClient == nil {
		var err error
		if httpClient, err = rest.HTTPClientFor(config); err != nil {
			return nil, err
		}
	}
	next := httpClient.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	over := *httpClient
	over.Transport, over.Timeout = bounded{next}, 0
	return &over, nil
}

// bounded refuses answers that are too large. It lies above decompression, so that it counts what is really read.
type bounded struct{ next http.RoundTripper }

// RoundTrip bounds the body of the answer.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err == nil && !isWatch(req) {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxResponse)
	}
	return resp, err
}

// WrappedRoundTripper lets client-go reach the transport below.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// isWatch tells a watch, whose answer has no end, from other requests.
func isWatch(req *http.Request) bool {
	w := req.URL.Query().Get("watch")
	return w == "true" || w == "1"
}

// caller is what every part needs for a call: the client, a deadline, a clock.
type caller struct {
	client   dynamic.Interface
	timeout  time.Duration
	retryMax time.Duration
	reread   time.Duration
	now      func() time.Time
}

func newCaller(call string, client dynamic.Interface, o Options) (caller, error) {
	if err := option.CheckRequired(call, "client", client, "see NewClient"); err != nil {
		return caller{}, err
	}
	if o.Timeout < 0 {
		return caller{}, fmt.Errorf("timeout must be positive, or 0 for %s, got %s", defaultTimeout, o.Timeout)
	}
	if o.RetryMax < 0 {
		return caller{}, fmt.Errorf("retryMax must be positive, or 0 for %s, got %s", defaultRetryMax, o.RetryMax)
	}
	if o.Reread < 0 {
		return caller{}, fmt.Errorf("reread must be positive, or 0 for each time, got %s", o.Reread)
	}
	c := caller{client: client, timeout: o.Timeout, retryMax: o.RetryMax, reread: o.Reread, now: o.Now}
	if c.retryMax == 0 {
		c.retryMax = defaultRetryMax
	}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c, nil
}

// newNodeCaller is newCaller for a part that works on the objects of one node.
func newNodeCaller(call string, client dynamic.Interface, node string, o Options) (caller, error) {
	check := option.For(call, nil)
	check.Require("client", client, "see NewClient")
	check.Require("node", node, "the name of the Node")
	if err := check.Err(); err != nil {
		return caller{}, err
	}
	if problems := validation.IsDNS1123Subdomain(node); len(problems) > 0 {
		return caller{}, fmt.Errorf("node name %q: %s", node, problems[0])
	}
	return newCaller(call, client, o)
}

// within gives ctx the deadline of one call.
func (c caller) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}

// The parts are what a Syncer asks for.
var (
	_ configsync.Source        = (*NodeConfigSource)(nil)
	_ configsync.Source        = (*annotationSource)(nil)
	_ configsync.Source        = (*legacySource)(nil)
	_ configsync.FollowFetcher = (*configMapFetcher)(nil)
	_ configsync.Reporter      = (*nodeConditionReporter)(nil)
	_ configsync.Reporter      = (*statusReporter)(nil)
)
