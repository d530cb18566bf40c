// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// A counter counts the requests of a drain by which pods leave.
type counter struct {
	mu                     sync.Mutex
	sent, refused, deleted int
}

// wrapConfig returns a config whose requests are counted.
func (c *counter) wrapConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &countingTransport{counter: c, next: next} })
	return config
}

func (c *counter) readCounts() (sent, refused, deleted int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent, c.refused, c.deleted
}

func (c *counter) countRequest(deletion, refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case deletion && !refused:
		c.deleted++
	case !deletion:
		c.sent++
		if refused {
			c.refused++
		}
	}
}

// A countingTransport counts evictions and deletions of pods.
type countingTransport struct {
	counter *counter
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	eviction := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/eviction")
	deletion := r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/pods/")
	if !eviction && !deletion {
		return t.next.RoundTrip(r)
	}
	dry, err := isDryRun(r)
	if err != nil {
		return nil, err
	}
	response, err := t.next.RoundTrip(r)
	if !dry {
		t.counter.countRequest(deletion, err != nil || response.StatusCode >= http.StatusBadRequest)
	}
	return response, err
}

// isDryRun reports whether a request changes nothing. The body of an eviction, JSON or protobuf, has the field.
func isDryRun(r *http.Request) (bool, error) {
	if r.URL.Query().Has("dryRun") {
		return true, nil
	}
	if r.Body == nil {
		return false, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false, err
	}
	if err := r.Body.Close(); err != nil {
		return false, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return bytes.Contains(body, []byte(`"dryRun":["All"]`)) || bytes.Contains(body, []byte("\x2a\x03All")), nil
}
