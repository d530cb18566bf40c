// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"bytes"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// cable is the network between a client and the API server. It can be cut.
type cable struct {
	mu      sync.Mutex
	broken  bool
	expired int // how many watches are answered that they are too old
	watches []io.Closer
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// through gives a config whose requests go by the cable.
func (c *cable) through(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) { return c.carry(next, r) })
	})
	return config
}

func (c *cable) carry(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if answer, err := c.interfere(r); answer != nil || err != nil {
		return answer, err
	}
	answer, err := next.RoundTrip(r)
	if err == nil && isWatch(r) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.watches = append(c.watches, answer.Body)
		if c.broken { // cut while the server answered
			answer.Body.Close()
		}
	}
	return answer, err
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

func (c *cable) interfere(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.broken:
		return nil, io.ErrUnexpectedEOF
	case !isWatch(r) || c.expired == 0:
		return nil, nil
	}
	c.expired--
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
	return &http.Response{
		StatusCode: http.StatusGone, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader([]byte(body))),
	}, nil
}

// cut ends the watches and lets nothing through.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = true
	for _, w := range c.watches {
		w.Close()
	}
	c.watches = nil
}

// mend lets everything through, but for so many watches that have to start anew.
func (c *cable) mend(expired int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken, c.expired = false, expired
}
