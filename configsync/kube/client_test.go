// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
)

// countingTransport counts the requests of an embedder's HTTP client.
type countingTransport struct{ requests atomic.Int32 }

func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return http.DefaultTransport.RoundTrip(r)
}

// TestOwnHTTPClient: all requests go through the HTTP client that is given, which stays as it is; its timeout ends no
// call, and what is too large is not read.
func TestOwnHTTPClient(t *testing.T) {
	body := fmt.Sprintf(configMapBody, "cm")
	for name, c := range map[string]struct {
		answer string
		want   error
	}{"an object": {body, nil}, "too large": {body + strings.Repeat(" ", kube.MaxResponse), configsync.ErrUnreachable}} {
		t.Run(name, func(t *testing.T) {
			transport := &countingTransport{}
			own := &http.Client{Transport: transport, Timeout: time.Nanosecond}
			config := impostor(t, says(200, c.answer))
			config.Timeout = time.Nanosecond
			client, err := kube.NewClient(config, own)
			must(t, err)
			f, err := kube.NewConfigMapFetcher(client, kube.Options{})
			must(t, err)
			if _, err = f.Fetch(deadline(t), configsync.Spec{Namespace: "ns", Name: "cm", UID: "u"}); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if n := transport.requests.Load(); n != 1 {
				t.Errorf("the HTTP client has carried %d requests, want 1", n)
			}
			if own.Transport != transport || own.Timeout != time.Nanosecond || config.Timeout != time.Nanosecond {
				t.Errorf("the HTTP client is %+v and the timeout of the config %s, want both as they were", *own, config.Timeout)
			}
		})
	}
}

// TestClientNamesItself: the API server is told who asks, with an HTTP client of the config and without a transport.
func TestClientNamesItself(t *testing.T) {
	agents := make(chan string, 1)
	server := impostor(t, func(w http.ResponseWriter, r *http.Request) {
		agents <- r.UserAgent()
		says(404, "{}")(w, r)
	})
	for want, over := range map[string]*http.Client{rest.DefaultKubernetesUserAgent(): nil, "Go-http-client/1.1": {}} {
		client, err := kube.NewClient(server, over)
		must(t, err)
		f, err := kube.NewConfigMapFetcher(client, kube.Options{})
		must(t, err)
		if _, err := f.Fetch(deadline(t), configsync.Spec{Namespace: "ns", Name: "cm", UID: "u"}); err == nil {
			t.Error("got no error for an object that is not there")
		}
		if got := <-agents; got != want {
			t.Errorf("the server has seen the user agent %q, want %q", got, want)
		}
	}
}
