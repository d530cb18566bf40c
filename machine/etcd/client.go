// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
)

const (
	defaultTimeout = 5 * time.Second
	// maxAnswer is far more than the members of any cluster take.
	maxAnswer = 4 << 20
)

// Options are what a [Client] is made of. Endpoints is required.
type Options struct {
	// Endpoints are client URLs, as "https://10.0.0.1:2379". They are tried in order, after those that the members themselves advertise.
	Endpoints []string
	// TLS has the certificates of a client that may change members, and of the cluster's CA. Nil is that of the system, without a client certificate.
	TLS *tls.Config
	// Runs says whether a member runs on a machine. Nil compares the name of the member with those of the machine and
	// of its Node, and the addresses at which it listens to its peers with theirs.
	Runs func(m machine.Machine, member Member) bool
	// CallTimeout bounds each call; 0 is 5 s.
	CallTimeout time.Duration
}

// A Client speaks to one cluster. Make it with [New].
type Client struct {
	o    Options
	http *http.Client
}

// New returns a client. It calls nothing yet. The error names the option that is wrong.
func New(o Options) (*Client, error) {
	if len(o.Endpoints) == 0 {
		return nil, option.CheckRequired("machine/etcd.New", "Options.Endpoints", nil, "URLs like https://10.0.0.1:2379")
	}
	for i, e := range o.Endpoints {
		if u, err := url.Parse(e); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, fmt.Errorf("etcd: options: Endpoints[%d] is %q: want a URL like https://10.0.0.1:2379", i, e)
		}
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = defaultTimeout
	}
	if o.Runs == nil {
		o.Runs = runsEtcd
	}
	t := &http.Transport{TLSClientConfig: o.TLS, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute}
	return &Client{o, &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// An answerError is an answer that is no success.
type answerError struct {
	Code    int    `json:"code"` // of gRPC
	Message string `json:"message"`
	Text    string `json:"error"`
	status  int
}

// Error implements error.
func (e *answerError) Error() string {
	text := e.Message
	if text == "" {
		text = e.Text
	}
	return fmt.Sprintf("status %d: %.200q", e.status, text)
}

// notFound is gRPC's code for what is not there.
const notFound = 5

// call asks the endpoints in turn until one answers. A refusal is an answer.
func (c *Client) call(ctx context.Context, endpoints []string, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range endpoints {
		err := c.one(ctx, http.MethodPost, strings.TrimSuffix(e, "/")+path, body, out)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", e, err))
		if answer := (*answerError)(nil); errors.As(err, &answer) && answer.status < http.StatusInternalServerError {
			break
		}
	}
	return errors.Join(errs...)
}

func (c *Client) one(ctx context.Context, method, at string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		refusal := &answerError{status: answer.StatusCode}
		if json.Unmarshal(data, refusal) != nil || refusal.Message+refusal.Text == "" {
			refusal.Text = string(data)
		}
		return refusal
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("the answer is no JSON as of etcd: %w", err)
	}
	return nil
}

// members are those of the cluster, by consensus: a member that was removed does not answer for it.
func (c *Client) members(ctx context.Context) ([]Member, error) {
	var answer struct {
		Members []Member `json:"members"`
	}
	if err := c.call(ctx, c.o.Endpoints, "/v3/cluster/member/list", map[string]bool{"linearizable": true}, &answer); err != nil {
		return nil, fmt.Errorf("etcd: list members: %w", err)
	}
	if len(answer.Members) == 0 {
		return nil, errors.New("etcd: list members: the answer has none")
	}
	return answer.Members, nil
}

// elsewhere are the endpoints of the other members, and then all that are known.
func (c *Client) elsewhere(members []Member, but string) []string {
	var all []string
	for _, m := range members {
		if m.ID != but {
			all = append(all, m.ClientURLs...)
		}
	}
	for _, e := range c.o.Endpoints {
		if !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return all
}
