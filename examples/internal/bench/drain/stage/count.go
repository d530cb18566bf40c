// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/backoff"
)

// settle is how long the audit log may lag behind the answers.
const settle = 5 * time.Second

// A Client is the client of one run.
type Client struct {
	Config  *rest.Config
	Counter *Counter

	stage *Stage
	user  string
	plain rest.Config
}

// A Kind sorts requests.
type Kind int

// The kinds of requests.
const (
	Read Kind = iota
	Watch
	Evict
	Write
)

// A Request is one that was answered, or failed, with code 0.
type Request struct {
	Kind Kind
	Pod  string // namespace/name, of an eviction
	Sent time.Time
	Done time.Time
	Code int
}

// A Counter records what goes over the wire, repetitions by the client library included.
type Counter struct {
	mu       sync.Mutex
	requests []Request
}

type counted struct {
	counter *Counter
	next    http.RoundTripper
}

func (c *Counter) wrap(next http.RoundTripper) http.RoundTripper { return counted{c, next} }

// RoundTrip counts a request once its header is answered, so that a watch counts when it begins.
func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	record := Request{Sent: time.Now()}
	record.Kind, record.Pod = classify(r)
	answer, err := c.next.RoundTrip(r)
	record.Done = time.Now()
	if err == nil {
		record.Code = answer.StatusCode
	}
	c.counter.mu.Lock()
	defer c.counter.mu.Unlock()
	c.counter.requests = append(c.counter.requests, record)
	return answer, err
}

func classify(r *http.Request) (kind Kind, pod string) {
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Has("watch"):
		return Watch, ""
	case r.Method == http.MethodGet:
		return Read, ""
	case strings.HasSuffix(r.URL.Path, "/eviction"):
		part := strings.Split(r.URL.Path, "/") // /api/v1/namespaces/NAMESPACE/pods/NAME/eviction
		return Evict, part[len(part)-4] + "/" + part[len(part)-2]
	}
	return Write, ""
}

// Counts sums requests up.
type Counts struct {
	Total, Reads, Watches, Evictions, Writes int
	// Codes are those of evictions.
	Codes map[int]int
}

// Since sums up what was sent at or after a time.
func (c *Counter) Since(from time.Time) Counts { return c.Between(from, time.Now()) }

// Between sums up what was sent in a time.
func (c *Counter) Between(from, until time.Time) Counts {
	counts := Counts{Codes: map[int]int{}}
	for _, r := range c.Requests() {
		if r.Sent.Before(from) || r.Sent.After(until) {
			continue
		}
		counts.Total++
		switch r.Kind {
		case Read:
			counts.Reads++
		case Watch:
			counts.Watches++
		case Evict:
			counts.Evictions++
			counts.Codes[r.Code]++
		case Write:
			counts.Writes++
		}
	}
	return counts
}

// Requests returns all, in the order in which they were answered.
func (c *Counter) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[:len(c.requests):len(c.requests)]
}

// Agree compares the client's count of all its requests with the API server's, and returns both. Those that were cut off at the end
// of a run may be missing on either side.
func (c *Client) Agree(ctx context.Context) (client, server int, err error) {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	for {
		client = c.Counter.Since(time.Time{}).Total
		served, err := c.stage.audit.of(c.user)
		if err != nil {
			return client, server, err
		}
		server = served.Requests
		if client == server {
			return client, server, nil
		}
		if !backoff.Sleep(ctx, 50*time.Millisecond) {
			break
		}
	}
	if diff := max(client-server, server-client); diff > max(3, server/100) {
		return client, server, fmt.Errorf("the client of %q counts %d requests, the API server %d: the measurement is worth nothing", c.user, client, server)
	}
	return client, server, nil
}

// Served returns what the API server has received from the client, and from other processes in its name.
func (c *Client) Served() (Served, error) { return c.stage.audit.of(c.user) }
