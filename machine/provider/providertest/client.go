// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine/provider"
)

// Options are what a client of a [Server] needs.
type Options struct {
	// URL is that of the server, as "http://127.0.0.1:8080".
	URL string
	// HTTP makes the requests; nil is a client of its own whose calls take a minute at most.
	HTTP *http.Client
}

// New returns the provider that a server is. It has all abilities.
func New(o Options) (provider.Provider, error) {
	c, err := newConn(o)
	if err != nil {
		return nil, fmt.Errorf("making a client of a fake cloud: %w", err)
	}
	return provider.Typed(provider.Kind{APIVersion: APIVersion, Kind: KindName}, client{c}), nil
}

// conn is how a server is reached.
type conn struct {
	url  string
	http *http.Client
}

func newConn(o Options) (conn, error) {
	remedy := "that of the server"
	if err := option.CheckRequired("machine/provider/providertest.New", "Options.URL", o.URL, remedy); err != nil {
		return conn{}, err
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return conn{}, err
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return conn{}, fmt.Errorf("url %q: want one like \"http://127.0.0.1:8080\"", o.URL)
	}
	if o.HTTP == nil {
		o.HTTP = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute}}
	}
	return conn{strings.TrimSuffix(o.URL, "/"), o.HTTP}, nil
}

// send makes one request and reads the reply. There are no retries: whoever calls knows what may have happened.
func (c conn) send(ctx context.Context, method, path string, body []byte, into any) error {
	if c.http == nil {
		return option.NotMade("machine/provider/providertest.Client", "machine/provider/providertest.New and NewAdmin")
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return provider.Errorf(provider.Internal, "request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	reply, err := c.http.Do(r)
	if err != nil {
		return provider.Errorf(provider.Unavailable, "%w", err)
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(io.LimitReader(reply.Body, maxReply+1))
	if err == nil && len(data) > maxReply {
		err = fmt.Errorf("it has more than %d bytes", maxReply)
	}
	if err != nil {
		return provider.Errorf(provider.Unavailable, "reading the reply: %w", err)
	}
	if reply.StatusCode != http.StatusOK {
		return errorOf(reply.StatusCode, reply.Header, data)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return provider.Errorf(provider.Unavailable, "understanding the reply: %w", err)
	}
	return nil
}

// call makes a call of the provider about something.
func call[A any](ctx context.Context, c conn, method, about string, q any) (A, error) {
	var a A
	body, err := json.Marshal(q)
	if err == nil {
		err = c.send(ctx, http.MethodPost, callPath+method, body, &a)
	}
	return a, named(err, "fake cloud: %s %q", strings.ToLower(method), about)
}

// named adds to an error what it was about, and keeps its class.
func named(err error, format string, args ...any) error {
	var e *provider.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return &provider.Error{Class: e.Class, After: e.After, Err: fmt.Errorf(format+": %w", append(args, e.Err)...)}
	}
	return provider.Errorf(provider.Internal, format+": %w", append(args, err)...)
}

// client is the provider with its config decoded.
type client struct{ conn }

func (c client) Create(ctx context.Context, r provider.CreateRequest, config Config) (provider.Instance, error) {
	return call[provider.Instance](ctx, c.conn, "Create", r.Token, sent(r, config))
}

// sent is a request without its secrets: the fake cloud is told that there are some, not what they are.
func sent(r provider.CreateRequest, config Config) createCall {
	q := createCall{Request: r, Config: config}
	for key, value := range r.Join.Bootstrap {
		if q.Bootstrap == nil {
			q.Bootstrap = map[string]string{}
		}
		sum := sha256.Sum256(value)
		q.Bootstrap[key] = hex.EncodeToString(sum[:])
	}
	q.Request.Join = provider.Join{Endpoint: r.Join.Endpoint}
	q.Request.Desired.Config = nil
	return q
}

func (c client) Get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	return call[provider.Instance](ctx, c.conn, "Get", ref.Token, refCall{Ref: ref})
}

func (c client) List(ctx context.Context, s provider.Scope) ([]provider.Instance, error) {
	return call[[]provider.Instance](ctx, c.conn, "List", s.Cluster, s)
}

func (c client) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	r.Credentials = nil
	return call[provider.Progress](ctx, c.conn, "Delete", r.Ref.Token, r)
}

func (c client) Plan(ctx context.Context, r provider.UpdateRequest, config Config) (provider.Plan, error) {
	return call[provider.Plan](ctx, c.conn, "Plan", r.Ref.Token, changing(r, config))
}

func (c client) Update(ctx context.Context, r provider.UpdateRequest, config Config) (provider.Progress, error) {
	return call[provider.Progress](ctx, c.conn, "Update", r.Ref.Token, changing(r, config))
}

func changing(r provider.UpdateRequest, config Config) updateCall {
	r.Join, r.Desired.Config = provider.Join{}, nil
	return updateCall{r, config}
}

func (c client) Validate(ctx context.Context, _ provider.Desired, config Config) error {
	_, err := call[nothing](ctx, c.conn, "Validate", config.Size, configCall{config})
	return err
}

func (c client) Stop(ctx context.Context, ref provider.Ref) (provider.Progress, error) {
	return call[provider.Progress](ctx, c.conn, "Stop", ref.Token, refCall{Ref: ref})
}

func (c client) Reboot(ctx context.Context, ref provider.Ref, id string) (provider.Progress, error) {
	return call[provider.Progress](ctx, c.conn, "Reboot", ref.Token, refCall{Ref: ref, ID: id})
}

func (c client) Adopt(ctx context.Context, r provider.AdoptRequest, config Config) (provider.Instance, error) {
	return call[provider.Instance](ctx, c.conn, "Adopt", r.From.Token, adoptCall{r.From, sent(r.As, config)})
}

func (c client) Capacity(ctx context.Context, _ provider.Desired, config Config) (map[string]string, error) {
	return call[map[string]string](ctx, c.conn, "Capacity", config.Size, configCall{config})
}

func (c client) Console(ctx context.Context, ref provider.Ref, limit int) ([]byte, error) {
	return call[[]byte](ctx, c.conn, "Console", ref.Token, refCall{Ref: ref, Limit: limit})
}

func (c client) Resize(ctx context.Context, name string, size int, _ provider.Desired, config Config) error {
	_, err := call[nothing](ctx, c.conn, "Resize", name, resizeCall{name, size, config})
	return err
}
