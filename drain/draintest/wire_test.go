// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Wire is what lies between a process and a real API server: the faults of its script come as responses, or as none, so that the
// client that reads them is under test too. The log has what was sent. Its watches can be cut.
type Wire struct {
	*Script

	mu      sync.Mutex
	cut     bool
	watches []io.Closer
}

// NewWire returns a wire that spoils nothing yet.
func NewWire() *Wire {
	w := &Wire{Script: &Script{now: time.Now}}
	w.drop = w.DropWatch
	return w
}

// A roundTrip is an [http.RoundTripper].
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Requests is the way of a Drainer's requests.
func (w *Wire) Requests(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		call, err := callOf(r)
		if err != nil {
			return nil, err
		}
		var response *http.Response
		err = w.call(r.Context(), call, func() (bool, error) {
			var err error
			if response, err = next.RoundTrip(r); err != nil { //nolint:bodyclose // its reader closes it, or what follows
				return false, err
			}
			if response.StatusCode >= http.StatusBadRequest {
				return false, errRefused
			}
			return call.Verb != GetNode && call.Verb != ListPods && !call.DryRun, nil
		})
		if err == nil || errors.Is(err, errRefused) {
			return response, nil
		}
		if response != nil {
			response.Body.Close()
		}
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			return responseOf(r, status.Status()), nil
		}
		return nil, err
	})
}

// errRefused stands in the log for the server's own refusal.
var errRefused = errors.New("refused by the server")

// callOf reads what a request asks for. The body is as it was afterwards.
func callOf(r *http.Request) (Call, error) {
	body, err := bodyOf(r)
	if err != nil {
		return Call{}, err
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	_, selected, _ := strings.Cut(r.URL.Query().Get("fieldSelector"), "=")
	var eviction policyv1.Eviction
	switch {
	case r.Method == http.MethodPost && len(path) == 7 && path[6] == "eviction":
		err = json.Unmarshal(body, &eviction)
		return removal(Evict, path, eviction.DeleteOptions), err
	case r.Method == http.MethodDelete && len(path) == 6:
		eviction.DeleteOptions = &metav1.DeleteOptions{}
		err = json.Unmarshal(body, eviction.DeleteOptions)
		return removal(Delete, path, eviction.DeleteOptions), err
	case r.Method == http.MethodPatch && path[2] == "nodes":
		return Call{Verb: PatchNode, Object: path[3], Patch: string(body), Status: len(path) == 5}, nil
	case r.Method == http.MethodGet && path[2] == "nodes":
		return Call{Verb: GetNode, Object: selected}, nil
	case r.Method == http.MethodGet && path[2] == "pods":
		return Call{Verb: ListPods, Object: selected}, nil
	}
	return Call{}, fmt.Errorf("draintest: no request of a Drainer: %s %s", r.Method, r.URL)
}

func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

// removal is the request to end a pod, with the path api/v1/namespaces/NAMESPACE/pods/NAME.
func removal(verb Verb, path []string, o *metav1.DeleteOptions) Call {
	call := Call{Verb: verb, Object: path[3] + "/" + path[5]}
	if o == nil {
		return call
	}
	call.GracePeriodSeconds, call.DryRun = o.GracePeriodSeconds, len(o.DryRun) > 0
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		call.UID = *o.Preconditions.UID
	}
	return call
}

// responseOf is an answer as it comes over the wire: a Status of an API server, or the text of something else.
func responseOf(r *http.Request, s metav1.Status) *http.Response {
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	header := http.Header{"Content-Type": {"application/json"}}
	body, err := json.Marshal(s)
	if err != nil {
		body = []byte(err.Error())
	}
	if s.Details != nil {
		if s.Details.RetryAfterSeconds > 0 {
			header.Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
		}
		other := slices.IndexFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
		if other >= 0 {
			header.Set("Content-Type", "text/plain")
			body = []byte(s.Details.Causes[other].Message)
		}
	}
	return &http.Response{
		StatusCode: int(s.Code), Request: r, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// Watches is the way of a cache's requests.
func (w *Wire) Watches(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if w.isCut() {
			return nil, io.ErrUnexpectedEOF
		}
		response, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.cut {
			response.Body.Close()
			return nil, io.ErrUnexpectedEOF
		}
		if r.URL.Query().Get("watch") != "" {
			w.watches = append(w.watches, response.Body)
		}
		return response, nil
	})
}

func (w *Wire) isCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

// DropWatch cuts the watches, and lets nothing of the cache's through.
func (w *Wire) DropWatch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, watch := range w.watches {
		watch.Close()
	}
	w.watches = nil
}

// RestoreWatch lets everything through again.
func (w *Wire) RestoreWatch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}
