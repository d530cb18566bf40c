// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restclient_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/belayproject/belay/internal/restclient"
)

// A timeout that an embedder set for short calls does not reach watches: neither that of the config nor that of the
// HTTP client, which stay as they were.
func TestTimeoutsAreLeftOut(t *testing.T) {
	given, own := &rest.Config{Host: "http://127.0.0.1:1", Timeout: time.Second}, &http.Client{Timeout: time.Second}
	for _, over := range []*http.Client{nil, own} {
		config, client, err := restclient.WithoutTimeouts(given, over)
		if err != nil {
			t.Fatal(err)
		}
		if config.Timeout != 0 || client.Timeout != 0 {
			t.Errorf("the timeouts are %v and %v, want none", config.Timeout, client.Timeout)
		}
	}
	if given.Timeout != time.Second || own.Timeout != time.Second || given.QPS != 0 || given.UserAgent != "" {
		t.Errorf("what was given has changed: %+v, %+v", given, own)
	}
}

// Requests name their program, also where the caller did not think of it.
func TestRequestsNameTheirProgram(t *testing.T) {
	var agent string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { agent = r.UserAgent() }))
	defer server.Close()
	for want, given := range map[string]string{rest.DefaultKubernetesUserAgent(): "", "mine/1": "mine/1"} {
		_, client, err := restclient.WithoutTimeouts(&rest.Config{Host: server.URL, UserAgent: given}, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if agent != want {
			t.Errorf("the request is of %q, want %q", agent, want)
		}
	}
}

// A limit of requests is the embedder's, or there is none.
func TestLimitOfRequests(t *testing.T) {
	limiter := flowcontrol.NewTokenBucketRateLimiter(1, 1)
	for _, c := range []struct {
		given rest.Config
		qps   float32
	}{
		{rest.Config{}, -1},
		{rest.Config{QPS: 7}, 7},
		{rest.Config{RateLimiter: limiter}, 0},
	} {
		config, _, err := restclient.WithoutTimeouts(&c.given, nil)
		if err != nil {
			t.Fatal(err)
		}
		if config.QPS != c.qps || config.RateLimiter != c.given.RateLimiter {
			t.Errorf("of QPS %v became %v and limiter %v, want %v and the same limiter",
				c.given.QPS, config.QPS, config.RateLimiter, c.qps)
		}
	}
}
