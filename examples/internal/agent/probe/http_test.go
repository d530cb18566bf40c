// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// serve starts a server and gives its endpoint.
func serve(t *testing.T, network, address string, h http.HandlerFunc) Endpoint {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatalf("listening on %s %s: %v", network, address, err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return func() (string, string, bool) { return host, port, true }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "etcd is away", code) }
}

func newProbe(t *testing.T, template string, e Endpoint) *HTTP {
	t.Helper()
	p, err := New(template, e)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOnlyStatus200Passes(t *testing.T) {
	for _, c := range []struct {
		code int
		want string
	}{
		{200, ""}, {204, "status 204, want 200"}, {301, "status 301"}, {404, "status 404"}, {500, `begins "etcd is away\n"`},
	} {
		err := newProbe(t, Default, serve(t, "tcp4", "127.0.0.1:0", status(c.code))).Check(t.Context())
		if c.want == "" && err != nil {
			t.Errorf("status %d: %v, want nil", c.code, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("status %d: %v, want an error with %q", c.code, err, c.want)
		}
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	e := serve(t, "tcp4", "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			http.Redirect(w, r, "/fine", http.StatusFound)
		}
	})
	if err := newProbe(t, Default, e).Check(t.Context()); err == nil {
		t.Error("a redirect to a healthy page passed: the endpoint itself said nothing")
	}
}

func TestTheAddressFollowsTheConfig(t *testing.T) {
	sick := serve(t, "tcp4", "127.0.0.1:0", status(500))
	well := serve(t, "tcp6", "[::1]:0", status(200))
	now := sick
	p := newProbe(t, Default, func() (string, string, bool) { return now() })
	if p.Check(t.Context()) == nil {
		t.Error("the first endpoint is sick and passed")
	}
	now = well
	if err := p.Check(t.Context()); err != nil {
		t.Errorf("the config moved to a healthy IPv6 endpoint: %v, want nil", err)
	}
	now = func() (string, string, bool) { return "127.0.0.1", "0", false }
	if err := p.Check(t.Context()); !errors.Is(err, ErrNoEndpoint) {
		t.Errorf("no endpoint: %v, want ErrNoEndpoint", err)
	}
	if p.Name() != Default {
		t.Errorf("Name() = %q, want the template, which stays the same", p.Name())
	}
}

func TestAFixedAddressNeedsNoEndpoint(t *testing.T) {
	host, port, _ := serve(t, "tcp4", "127.0.0.1:0", status(200))()
	p := newProbe(t, "http://"+host+":"+port+"/livez", func() (string, string, bool) {
		t.Error("the endpoint was asked for")
		return "", "", false
	})
	if err := p.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNobodyThere(t *testing.T) {
	e := serve(t, "tcp4", "127.0.0.1:0", status(200))
	host, port, _ := e()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	err = newProbe(t, Default, func() (string, string, bool) { return host, port, true }).Check(t.Context())
	var refused *url.Error
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), port) {
		t.Errorf("nobody listens: %v, want an error with the port", err)
	}
}

func TestASlowAnswerEndsWithTheContext(t *testing.T) {
	e := serve(t, "tcp4", "127.0.0.1:0", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(2 * time.Second): // so that a probe that waits shows, instead of hanging
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := newProbe(t, Default, e).Check(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Check = %v, want the context's end", err)
	}
}

// A status that changes with each probe would be reported to the API server each time.
func TestTheSameTroubleReadsTheSame(t *testing.T) {
	e := serve(t, "tcp4", "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if err := c.(*net.TCPConn).SetLinger(0); err != nil { // the peer sees a reset
			t.Error(err)
		}
		c.Close()
	})
	p := newProbe(t, Default, e)
	first, second := p.Check(t.Context()), p.Check(t.Context())
	if first == nil || second == nil || first.Error() != second.Error() {
		t.Errorf("two resets read %v and %v, want the same error", first, second)
	}
}

func TestBadTemplatesAreRefused(t *testing.T) {
	for _, template := range []string{
		"", "127.0.0.1:10248", "unix:///run/a.sock", "http://", "http://{healthPort}/", "http://a:b@127.0.0.1/", "http://127.0.0.1:port/",
	} {
		if _, err := New(template, nil); err == nil || !strings.Contains(err.Error(), Default) {
			t.Errorf("New(%q) = %v, want an error that shows a right one", template, err)
		}
	}
}
