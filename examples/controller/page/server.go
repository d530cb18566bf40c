// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

//go:embed assets
var assets embed.FS

// The events of the stream.
const (
	eventModel  = "model"
	eventChange = "change"
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

func serveAsset(w http.ResponseWriter, r *http.Request, name, kind string) {
	raw, err := assets.ReadFile("assets/" + name)
	if err != nil {
		http.Error(w, "the page is not complete", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	write(w, r, raw)
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

// events sends the model, and then what changes, until the reader or the server ends, or the reader is too slow.
func (h *Hub) events(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	wake, ok := h.join()
	if !ok {
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d are reading already, and no more may", h.o.Readers), http.StatusServiceUnavailable)
		return
	}
	defer h.leave(wake)
	w.Header().Set("Content-Type", "text/event-stream")
	s := stream{to: http.NewResponseController(w), w: w}
	beat := time.NewTicker(h.o.Beat)
	defer beat.Stop()
	err := s.send("retry: 3000\n\n")
	for held := (*version)(nil); err == nil; {
		select {
		case <-r.Context().Done():
			return
		case <-wake:
		case <-beat.C:
			select {
			case <-wake: // to a reader who takes as long as a beat for each write, chance would bring no news
			default:
				err = s.send(": still here\n\n")
				continue
			}
		}
		if next := h.version(); next != nil && next != held {
			err = s.bring(held, next)
			held = next
		}
	}
	klog.FromContext(r.Context()).V(2).Info("A reader of the fleet page was cut off", "err", err)
}

// A stream is a reader's.
type stream struct {
	to *http.ResponseController
	w  http.ResponseWriter
}

// bring sends what leads from one version to another.
func (s stream) bring(held, next *version) error {
	event, data, err := next.since(held)
	if err != nil {
		return err
	}
	return s.send(fmt.Sprintf("event: %s\nid: %d\ndata: %s\n\n", event, next.number, data)) // JSON has no line ends
}

// send writes within [WriteTime].
func (s stream) send(text string) error {
	if err := s.to.SetWriteDeadline(time.Now().Add(WriteTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.to.Flush()
}
