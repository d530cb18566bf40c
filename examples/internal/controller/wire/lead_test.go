// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/belayproject/belay/examples/internal/controller/metrics"
	"github.com/belayproject/belay/examples/internal/controller/settings"
)

// A process that never sees the cluster shows, of each Lease that it would ask for, that it does not lead: by that people are told.
func TestWhoNeverSeesTheClusterShowsThatItDoesNotLead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer server.Close()
	m := metrics.New()
	p, err := New(run(t, server.URL), m, Parts{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	limit, look := time.After(time.Minute), time.NewTicker(10*time.Millisecond)
	defer look.Stop()
	for page := ""; ; page = scrape(t, m) {
		missing := ""
		for _, name := range []string{"rollout-one", "rollout-two", "machines", "agents"} {
			if line := `belay_leader{name="` + name + `"} 0`; !strings.Contains(page, line) {
				missing += line + "\n"
			}
		}
		if missing == "" {
			break
		}
		select {
		case <-limit:
			t.Fatalf("it does not show\n%sbut\n%s", missing, page)
		case <-look.C:
		}
	}
	if p.Ready() == nil {
		t.Error("it has seen the cluster")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// run is what a controller of two domains, of machines and of agents is told.
func run(t *testing.T, server string) *settings.Run {
	t.Helper()
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{Server: server}
	config.Contexts["c"] = &api.Context{Cluster: "c"}
	config.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	var s settings.Run
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	s.AddFlags(flags)
	err := flags.Parse([]string{"--kubeconfig=" + path, "--domains=one,two", "--agent-namespace=belay-agents", "--machine-provider=none", "--cluster=test"})
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

func scrape(t *testing.T, m *metrics.Set) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	return answer.Body.String()
}
