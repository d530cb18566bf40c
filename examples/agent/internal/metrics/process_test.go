// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
)

// What the process takes is on the page of every agent.
func TestProcessIsShown(t *testing.T) {
	page := httptest.NewRecorder()
	h := Handler(func() configsync.Status { return configsync.Status{} }, nil, nil)
	h.ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	for _, series := range []string{"\nprocess_resident_memory_bytes ", "\ngo_goroutines "} {
		if !strings.Contains(page.Body.String(), series) {
			t.Errorf("the metrics have no %q", strings.TrimSpace(series))
		}
	}
}
