// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
)

// A reach knows from the requests of the process whether the API server answers. It makes none of its own.
type reach struct {
	changed func(cause error) // is called when the server stops to answer, and with nil when it answers again

	mu    sync.Mutex
	cause error
}

// downCause is why the API server does not answer, or nil.
func (r *reach) downCause() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}

// recordAnswer takes in the end of a request.
func (r *reach) recordAnswer(cause error) {
	r.mu.Lock()
	edge := (cause == nil) != (r.cause == nil)
	r.cause = cause
	r.mu.Unlock()
	if edge && r.changed != nil {
		r.changed(cause)
	}
}

// wrapTransport is for [k8s.io/client-go/rest.Config.Wrap].
func (r *reach) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return &observedTransport{r, next}
}

type observedTransport struct {
	reach *reach
	next  http.RoundTripper
}

// RoundTrip sends a request and records whether there was an answer. A request that this process has given up tells
// nothing.
func (t *observedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	switch {
	case err != nil && request.Context().Err() != nil:
	case err != nil:
		t.reach.recordAnswer(shortCause(err))
	default:
		t.reach.recordAnswer(gatewayError(response))
	}
	return response, err
}

// gatewayError is for what a proxy or load balancer says where no API server is behind it. One that is overloaded
// says when to come back.
func gatewayError(response *http.Response) error {
	switch response.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		if response.Header.Get("Retry-After") == "" {
			return fmt.Errorf("the answer is %s", response.Status)
		}
	}
	return nil
}

// shortCause is err without the address that the caller names.
func shortCause(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}
