// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// The parts of an address that the config in use fills in.
const (
	AddressPart = "{healthzBindAddress}"
	PortPart    = "{healthzPort}"
	// Default is the kubelet's own health endpoint.
	Default = "http://" + AddressPart + ":" + PortPart + "/healthz"
)

// ErrNoEndpoint means that the config in use serves no health endpoint, so that nothing can be said.
var ErrNoEndpoint = errors.New("the config in use switches the health endpoint off")

// bodyLimit is how much of an answer is read, in bytes.
const bodyLimit = 128

// Endpoint gives the address and port of the health endpoint under the config in use; ok is false where there is none.
type Endpoint func() (address, port string, ok bool)

// An HTTP probe asks one address. Make it with [New].
type HTTP struct {
	template string
	endpoint Endpoint
	client   *http.Client
}

// New makes a probe of the address in template. endpoint is asked at each check, and only where the template needs it. The
// error says what is wrong with the template and what would be right.
func New(template string, endpoint Endpoint) (*HTTP, error) {
	sample := strings.NewReplacer(AddressPart, "127.0.0.1", PortPart, "1").Replace(template)
	u, err := url.Parse(sample)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || strings.ContainsAny(sample, "{}") {
		return nil, fmt.Errorf("health URL %q is not usable: it must be like %q or %q; the only parts in braces are %s and %s",
			template, Default, "http://127.0.0.1:10248/healthz", AddressPart, PortPart)
	}
	return &HTTP{template: template, endpoint: endpoint, client: client()}, nil
}

// Moves reports whether the template depends on the config in use.
func Moves(template string) bool {
	return strings.Contains(template, AddressPart) || strings.Contains(template, PortPart)
}

// client has no memory: each check makes its own connection, straight to the address.
func client() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Name is the template: it stays the same under every config.
func (p *HTTP) Name() string { return p.template }

// Check returns nil on status 200. Any other answer, and none before ctx ends, is an error that says what came.
func (p *HTTP) Check(ctx context.Context) error {
	address, err := p.address()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return withoutOwnPort(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, bodyLimit)) // a body that can't be read adds nothing to the status
	return fmt.Errorf("GET %s: status %d, want 200; the answer begins %q", address, resp.StatusCode, body)
}

// withoutOwnPort leaves out the port of our own end: it is another one each time, and the same trouble must read the same.
func withoutOwnPort(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		op.Source = nil
	}
	return err
}

// address fills the template in.
func (p *HTTP) address() (string, error) {
	if !Moves(p.template) {
		return p.template, nil
	}
	address, port, ok := p.endpoint()
	if !ok {
		return "", fmt.Errorf("probing %s: %w", p.template, ErrNoEndpoint)
	}
	if strings.Contains(address, ":") {
		address = "[" + address + "]"
	}
	return strings.NewReplacer(AddressPart, address, PortPart, port).Replace(p.template), nil
}
