// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"

	"github.com/belayproject/belay/examples/internal/agent/report"
)

// A Client talks to the agent that runs on a state directory. Make it with [Dial].
type Client struct{ http *http.Client }

// Dial connects to the agent on dir. Its error is [ErrNotRunning] when there is none.
func Dial(ctx context.Context, dir string) (*Client, error) {
	c, err := connect(ctx, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, ErrNotRunning
	case err != nil:
		return nil, fmt.Errorf("connecting to the agent on %q: %w", dir, err)
	}
	c.Close()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return connect(ctx, dir) }
	return &Client{&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}, nil
}

func connect(ctx context.Context, dir string) (c net.Conn, err error) {
	err = at(dir, SocketName, func(path string) error {
		c, err = (&net.Dialer{}).DialContext(ctx, "unix", path)
		return err
	})
	return c, err
}

// Status is the document of this moment.
func (c *Client) Status(ctx context.Context) (d report.Document, err error) {
	return d, c.call(ctx, http.MethodGet, pathStatus, nil, &d)
}

// ForgetBad is that of [Agent].
func (c *Client) ForgetBad(ctx context.Context, uid string) error {
	return c.call(ctx, http.MethodPost, pathForgetBad, request{UID: uid}, nil)
}

// UseLocal is that of [Agent].
func (c *Client) UseLocal(ctx context.Context, reason string) error {
	return c.call(ctx, http.MethodPost, pathUseLocal, request{Reason: reason}, nil)
}

// call sends in and reads out, which may be nil.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("asking the agent: %w", err)
	}
	defer resp.Body.Close()
	body := io.LimitReader(resp.Body, maxBodyBytes)
	if resp.StatusCode != http.StatusOK {
		return refusal(resp.StatusCode, body)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(body).Decode(out)
}

// refusal turns a failure back into an error of the same identity.
func refusal(code int, body io.Reader) error {
	var f failure
	if err := json.NewDecoder(body).Decode(&f); err != nil {
		return fmt.Errorf("the agent answered with status %d", code)
	}
	if f.Absent {
		return &absentError{f.Error}
	}
	return errors.New(f.Error)
}

// absentError is fs.ErrNotExist in the words of the agent.
type absentError struct{ text string }

func (e *absentError) Error() string { return e.text }

// Unwrap gives fs.ErrNotExist.
func (e *absentError) Unwrap() error { return fs.ErrNotExist }
