// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/klog/v2"
)

// policy lets the page load what is its own, and nothing else; nor may it be put into another page, or make HTML of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'; require-trusted-types-for 'script'"

// longestName is of the name of a Node.
const longestName = 253

// Handler answers requests. It changes nothing, and takes GET and HEAD alone.
func (h *Hub) Handler() http.Handler {
	mux := http.NewServeMux()
	for path, file := range map[string]struct{ name, kind string }{
		"/{$}":      {"index.html", "text/html; charset=utf-8"},
		"/page.css": {"page.css", "text/css; charset=utf-8"},
		"/page.js":  {"page.js", "text/javascript; charset=utf-8"},
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { serveAsset(w, r, file.name, file.kind) })
	}
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /events", h.events)
	mux.HandleFunc("GET /node", h.node)
	return h.guard(mux)
}

// guard puts the headers on every answer, and refuses a Host that is not the page's.
func (h *Hub) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy":      policy,
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "DENY",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Cache-Control":                "no-store",
		} {
			w.Header().Set(name, value)
		}
		if !h.knows(r.Host) {
			http.Error(w, "the host is not one of this page: want an address, localhost, or a name of --page-hosts", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knows reports whether a host is one by which the page may be asked for. An address is: no name resolves to it.
func (h *Hub) knows(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return true
	}
	return slices.ContainsFunc(h.o.Hosts, func(known string) bool { return strings.EqualFold(known, host) })
}

// write sends a body, if one is wanted. That a reader has gone is no error of anybody's.
func write(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// node answers with the story of a node.
func (h *Hub) node(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if name == "" || len(name) > longestName {
		http.Error(w, fmt.Sprintf("name has %d characters, must be the name of a node, of 1 to %d", len(name), longestName), http.StatusBadRequest)
		return
	}
	story, err := h.Story(name)
	switch {
	case errors.Is(err, ErrNoNode):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	raw, err := json.Marshal(story)
	if err != nil {
		klog.FromContext(r.Context()).Error(err, "Writing the story of a node", "node", name)
		http.Error(w, "the story can't be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	write(w, r, raw)
}
