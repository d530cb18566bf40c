// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A front stands before the API server, and refuses the resources that it is told to, as if the right were gone.
type front struct {
	server  http.Handler
	mu      sync.Mutex
	refused map[string]bool
	under   map[string][]context.CancelFunc // requests under way, by resource
}

// newFront returns one, and a kubeconfig that leads to it.
func newFront(t *testing.T, env *testenv.Env) (f *front, kubeconfig string) {
	t.Helper()
	config := env.Config()
	transport, err := rest.TransportFor(config)
	must(t, err)
	to, err := url.Parse(config.Host)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.FlushInterval = transport, -1
	f = &front{server: proxy, refused: map[string]bool{}, under: map[string][]context.CancelFunc{}}
	server := httptest.NewServer(f)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	must(t, testenv.WriteKubeconfig(kubeconfig, &rest.Config{Host: server.URL}))
	return f, kubeconfig
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	path := r.URL.Path
	resource := path[strings.LastIndex(path, "/")+1:]
	f.mu.Lock()
	refused := f.refused[resource]
	f.under[resource] = append(f.under[resource], cancel)
	f.mu.Unlock()
	if refused {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"%s are not for you"}`, resource)
		return
	}
	f.server.ServeHTTP(w, r.WithContext(ctx))
}

// set refuses these resources and no other, and ends what is under way about those.
func (f *front) set(refused ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.refused)
	for _, resource := range refused {
		f.refused[resource] = true
		for _, end := range f.under[resource] {
			end()
		}
		f.under[resource] = nil
	}
}

// A replica is not ready while a watch is refused by which it decides, and says which. That it comes back is shown where the watches are made.
func TestReadyWhileNoWatchIsRefused(t *testing.T) {
	t.Parallel()
	env := testenv.Start(t, testenv.Options{})
	must(t, env.InstallCRDs(t.Context(), v1alpha1.CRDs()...))
	f, kubeconfig := newFront(t, env)
	r := start(t, env, kubeconfig)
	ready := func() error { _, err := r.get("/readyz"); return err }
	must(t, testproc.Poll(patience, ready))
	all := []string{"nodeshadows", "rollouts", "revisions", "disruptionledgers", "configmaps", "deployments", "statefulsets"}
	f.set(all...)
	must(t, testproc.Poll(patience, func() error {
		err := ready()
		for _, resource := range all {
			if err == nil || !strings.Contains(err.Error(), resource+" are not for you") {
				return fmt.Errorf("%s are refused, and /readyz says %v", resource, err) //nolint:errorlint // it may be nil
			}
		}
		return nil
	}))
}
