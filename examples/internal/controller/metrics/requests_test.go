// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"net/http"
	"testing"
)

type answer int

// RoundTrip implements http.RoundTripper.
func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	if a == 0 {
		return nil, errors.New("no answer")
	}
	return &http.Response{StatusCode: int(a), Body: http.NoBody}, nil
}

// Requests are counted by method and code, those without an answer too.
func TestRequestsAreCounted(t *testing.T) {
	s := New()
	for _, a := range []answer{200, 200, 409, 0} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://x/", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := s.Requests(a).RoundTrip(r)
		if err == nil {
			defer response.Body.Close()
		}
		if (err == nil) != (a != 0) {
			t.Errorf("answer %d: got error %v", a, err)
		}
	}
	wantLines(t, s, "belay_api_requests_total", `belay_api_requests_total{code="0",method="PATCH"} 1`,
		`belay_api_requests_total{code="200",method="PATCH"} 2`, `belay_api_requests_total{code="409",method="PATCH"} 1`)
}
