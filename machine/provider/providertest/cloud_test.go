// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/providertest"
)

const config = `{"apiVersion": "fake.belay.dev/v1", "kind": "FakeConfig"}`

// A served cloud is one behind an address.
type served struct {
	t     testing.TB
	at    providertest.Options
	admin *providertest.Admin
}

func serve(t testing.TB, at providertest.Options) served {
	t.Helper()
	admin, err := providertest.NewAdmin(at)
	if err != nil {
		t.Fatal(err)
	}
	return served{t, at, admin}
}

// A cloud is a server in this process that can be restarted behind its address, with a clock that can be set forward.
type cloud struct {
	served
	dir   string
	ahead atomic.Int64
	died  atomic.Bool

	mu     sync.Mutex
	server *providertest.Server
}

func newCloud(t testing.TB) *cloud {
	t.Helper()
	c := &cloud{served: served{t: t}, dir: t.TempDir()}
	c.open()
	web := httptest.NewServer(c)
	t.Cleanup(func() {
		_ = c.current().Close()
		web.Close()
	})
	c.served = serve(t, providertest.Options{URL: web.URL})
	return c
}

func (c *cloud) open() {
	kill := func() { c.died.Store(true) }
	server, err := providertest.NewServer(providertest.ServerOptions{Dir: c.dir, NoSync: true, Now: c.now, Kill: kill})
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = server
}

func (c *cloud) current() *providertest.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.current().ServeHTTP(w, r) }

func (c *cloud) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *cloud) pass(d time.Duration) { c.ahead.Add(int64(d)) }

func (c *cloud) restart() {
	if err := c.current().Close(); err != nil {
		c.t.Fatal(err)
	}
	c.died.Store(false)
	c.open()
}

func (c served) client() provider.Provider {
	p, err := providertest.New(c.at)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c served) inject(faults ...providertest.Fault) {
	c.t.Helper()
	if err := c.admin.Inject(c.t.Context(), faults...); err != nil {
		c.t.Fatal(err)
	}
}

func (c served) inventory() providertest.Inventory {
	c.t.Helper()
	i, err := c.admin.Inventory(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return i
}

// host returns the instance of a token, if there is one.
func (c served) host(ctx context.Context, token string) (providertest.Host, bool, error) {
	hosts, err := c.admin.Instances(ctx)
	for _, h := range hosts {
		if h.Token == token {
			return h, true, err
		}
	}
	return providertest.Host{}, false, err
}

// want is a request for the n-th machine of a cluster.
func want(n int, config string) provider.CreateRequest {
	o := provider.Owner{Cluster: "c1", Namespace: "ns", Name: fmt.Sprintf("m%d", n), UID: fmt.Sprintf("uid-%d", n), Incarnation: 1}
	d := provider.Desired{Config: []byte(config), Versions: provider.Versions{Kubelet: "v1.36.3"}}
	return provider.CreateRequest{Token: provider.Token(o.Cluster, o.UID, 1), Owner: o, Digest: d.Digest(), Desired: d}
}

// with adds fields to the config.
func with(fields string) string {
	return config[:len(config)-1] + ", " + fields + "}"
}

func create(t testing.TB, p provider.Provider, r provider.CreateRequest) provider.Instance {
	t.Helper()
	i, err := p.Create(t.Context(), r)
	if err != nil {
		t.Fatalf("Create %q: %v", r.Token, err)
	}
	return i
}

func wantClass(t testing.TB, what string, err error, want provider.Class) {
	t.Helper()
	if got := provider.ClassOf(err); got != want {
		t.Errorf("%s: got class %q (error: %v), want %q", what, got, err, want)
	}
}
