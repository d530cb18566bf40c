// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/internal/controller/metrics"
	"github.com/belayproject/belay/examples/internal/controller/settings"
)

// The end of a term takes away what was shown of the drains of its domain, and leaves those of others.
func TestEndOfATermForgetsItsDrains(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	const nobody = `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
		"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(nobody), 0o600); err != nil {
		t.Fatal(err)
	}
	m := metrics.New()
	p, err := New(&settings.Run{
		Kubeconfig: kubeconfig, Domains: []string{"one", "two"}, Namespace: "n", Switch: "s",
		Drains: settings.Drains{Evictions: 1}, Stop: 10 * time.Second,
	}, m, Parts{})
	if err != nil {
		t.Fatal(err)
	}
	var phase drain.Phase
	for _, domain := range p.s.Domains {
		st, _, _ := p.drainer.ReconcileRequest(t.Context(), drain.Request{Node: "node", Holder: "rollout/" + domain, Maintenance: "m", Mode: drain.Drain}) // of a node that is not there
		phase = st.Phase
	}
	shows := func(when, count string) {
		t.Helper()
		page := httptest.NewRecorder()
		m.Handler().ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
		if want := `belay_drain_nodes{phase="` + string(phase) + `"} ` + count + "\n"; !strings.Contains(page.Body.String(), want) {
			t.Errorf("%s: the metrics have no %q:\n%s", when, want, page.Body)
		}
	}
	shows("both domains drain", "2")
	ctx, end := context.WithCancel(t.Context())
	end()
	_ = p.term(ctx, "one", p.ledgers["one"]) // what it says of its end is not looked at here
	shows("the term in one of them has ended", "1")
}
