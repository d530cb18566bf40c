// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/examples/internal/controller/page"
	"github.com/belayproject/belay/examples/internal/controller/page/pagetest"
)

// serve is the handler over a fleet of 12 nodes.
func serve(t *testing.T) http.Handler {
	t.Helper()
	h, err := page.New(page.Options{Source: pagetest.New(t, 12), Hosts: []string{"fleet.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	return h.Handler()
}

// An answer is what came of a request.
type answer struct {
	code   int
	header http.Header
	body   string
}

func ask(t *testing.T, h http.Handler, method, target string) answer {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, nil))
	return answer{w.Code, w.Header(), w.Body.String()}
}

// Every answer, also an error, forbids what the page does not need.
func TestHeaders(t *testing.T) {
	h := serve(t)
	for _, c := range []struct {
		path, kind string
		code       int
	}{
		{"/", "text/html; charset=utf-8", 200},
		{"/page.css", "text/css; charset=utf-8", 200},
		{"/page.js", "text/javascript; charset=utf-8", 200},
		{"/favicon.ico", "", 204},
		{"/node?name=" + pagetest.NodeName(2), "application/json", 200},
		{"/node?name=other", "text/plain; charset=utf-8", 404},
		{"/node", "text/plain; charset=utf-8", 400},
		{"/node?name=" + strings.Repeat("n", 254), "text/plain; charset=utf-8", 400},
		{"/assets/index.html", "text/plain; charset=utf-8", 404},
		{"/../model.go", "", 307}, // to the clean path, which is not there
	} {
		r := ask(t, h, http.MethodGet, "http://localhost"+c.path)
		if r.code != c.code || c.kind != "" && r.header.Get("Content-Type") != c.kind {
			t.Errorf("%s: %d, %q; want %d, %q", c.path, r.code, r.header.Get("Content-Type"), c.code, c.kind)
		}
		policy := r.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy is %q, want %q in it", c.path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
			t.Errorf("%s: the policy is loose: %q", c.path, policy)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Frame-Options": "DENY"} {
			if got := r.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", c.path, name, got, want)
			}
		}
	}
}

// Nothing but GET and HEAD is answered, and a HEAD has no body and comes to an end.
func TestMethods(t *testing.T) {
	h := serve(t)
	for _, path := range []string{"/", "/page.js", "/events", "/node?name=" + pagetest.NodeName(2)} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
			if r := ask(t, h, method, "http://localhost"+path); r.code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d, want %d", method, path, r.code, http.StatusMethodNotAllowed)
			}
		}
		r := ask(t, h, http.MethodHead, "http://localhost"+path)
		if r.code != http.StatusOK || r.body != "" {
			t.Errorf("HEAD %s: %d with %q, want 200 and nothing", path, r.code, r.body)
		}
	}
}

// A page of somebody else can't read this one by a name of its own that resolves to a loopback address.
func TestHostIsChecked(t *testing.T) {
	h := serve(t)
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8474": 200, "127.0.0.1:8474": 200, "[::1]:8474": 200, "10.0.0.7": 200, "fleet.example.com": 200, "FLEET.example.com:443": 200,
		"evil.example.com": 421, "evil.example.com:8474": 421, "localhost.evil.example.com": 421, "127.0.0.1.evil.example.com": 421,
	} {
		for _, path := range []string{"/", "/node?name=" + pagetest.NodeName(2), "/events"} {
			method := http.MethodGet
			if path == "/events" {
				method = http.MethodHead
			}
			if r := ask(t, h, method, "http://"+host+path); r.code != want {
				t.Errorf("%s%s: %d, want %d", host, path, r.code, want)
			}
		}
	}
}

// Everything that the page loads is its own, and nothing in it is inline, so that the policy holds.
func TestPageIsWhole(t *testing.T) {
	h := serve(t)
	html := ask(t, h, http.MethodGet, "http://localhost/").body
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if strings.HasPrefix(m[1], "#") {
			continue
		}
		if r := ask(t, h, http.MethodGet, "http://localhost/"+strings.TrimPrefix(m[1], "/")); r.code >= 300 {
			t.Errorf("the page loads %q, which is %d", m[1], r.code)
		}
	}
	for _, never := range []string{"<style", "onclick=", "style=", "http://", "https://", "innerHTML"} {
		if strings.Contains(html, never) {
			t.Errorf("the page has %q", never)
		}
	}
	script := ask(t, h, http.MethodGet, "http://localhost/page.js").body
	for _, never := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http://", "https://", "localStorage", "import("} {
		if strings.Contains(script, never) {
			t.Errorf("the script has %q", never)
		}
	}
	style := ask(t, h, http.MethodGet, "http://localhost/page.css").body
	for _, never := range []string{"@import", "url("} {
		if strings.Contains(style, never) {
			t.Errorf("the style has %q", never)
		}
	}
	for _, want := range []string{"prefers-color-scheme", "prefers-reduced-motion", "forced-colors"} {
		if !strings.Contains(style, want) {
			t.Errorf("the style has no %q", want)
		}
	}
}

// On a real connection the model comes as an event, and the stream ends with the server's context.
func TestEventsOverHTTP(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	hub, err := page.New(page.Options{Source: pagetest.New(t, 12)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx, nil) }()
	server := httptest.NewServer(hub.Handler())
	defer server.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("the events are %q", kind)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	event := ""
	for lines.Scan() {
		event = orCut(lines.Text(), "event: ", event)
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found || event == "beat" {
			continue
		}
		var m page.Model
		if err := json.Unmarshal([]byte(data), &m); err != nil || len(m.Names()) != 12 {
			t.Errorf("the model has %d nodes, %v; want 12", len(m.Names()), err)
		}
		break
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
