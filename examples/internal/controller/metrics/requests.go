// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http"
	"strconv"

	"k8s.io/component-base/metrics"
)

// Requests counts those that this process sends to the API server, by method and code of the answer; 0 is none.
func (s *Set) Requests(next http.RoundTripper) http.RoundTripper {
	return counting{next, s.requests}
}

// counting is a transport.
type counting struct {
	next  http.RoundTripper
	count *metrics.CounterVec
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	code := 0
	if err == nil {
		code = response.StatusCode
	}
	c.count.WithLabelValues(r.Method, strconv.Itoa(code)).Inc()
	return response, err
}
