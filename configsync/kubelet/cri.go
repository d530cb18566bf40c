// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// maxVersion bounds the answer of a runtime, in bytes.
const maxVersion = 64 << 10

// askRuntime calls Version of the CRI at an endpoint, and returns what answered, such as "containerd v2.1.4". An
// endpoint that is no Unix socket is not asked.
func askRuntime(ctx context.Context, endpoint string) (version string, err error) {
	socket, ok := socketOf(endpoint)
	if !ok {
		return "", nil
	}
	transport := newRuntimeTransport(socket)
	defer transport.CloseIdleConnections()
	// One message of gRPC: it is not compressed, and VersionRequest is empty.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/runtime.v1.RuntimeService/Version",
		bytes.NewReader(make([]byte, 5)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", fmt.Errorf("%s: %w", endpoint, withoutAddress(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxVersion))
	if err != nil {
		return "", fmt.Errorf("%s: reading its version: %w", endpoint, err)
	}
	status := resp.Trailer.Get("Grpc-Status")
	if status == "" {
		status = resp.Header.Get("Grpc-Status")
	}
	if resp.StatusCode != http.StatusOK || status != "0" {
		return "", fmt.Errorf("%s: status %d, gRPC status %q to a call of CRI v1, want 200 and 0", endpoint,
			resp.StatusCode, status)
	}
	return versionIn(body), nil
}

// newRuntimeTransport returns a transport to a Unix socket, for one call. Its connection is closed with the call, also
// where that is given up: a runtime that hangs would keep it for as long as it lives.
func newRuntimeTransport(socket string) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{
		Protocols: protocols, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}
}

// socketOf returns the path of a Unix socket. A kubelet takes an endpoint without a scheme for one.
func socketOf(endpoint string) (path string, ok bool) {
	if path, ok := strings.CutPrefix(endpoint, "unix://"); ok {
		return path, true
	}
	return endpoint, strings.HasPrefix(endpoint, "/")
}

// withoutAddress leaves out the address, which the caller names, and keeps the cause.
func withoutAddress(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// versionIn reads the name and the version of the runtime: fields 2 and 3 of a VersionResponse, behind the 5 bytes
// that precede a message. What can't be read is left out.
func versionIn(body []byte) string {
	var name, version string
	for rest := body[min(5, len(body)):]; len(rest) > 2; {
		tag := rest[0]
		length, n := binary.Uvarint(rest[1:])
		if n <= 0 || tag&7 != 2 || length > uint64(len(rest)-1-n) {
			break
		}
		size := 1 + n + int(length)
		switch text := string(rest[1+n : size]); tag >> 3 {
		case 2:
			name = text
		case 3:
			version = text
		}
		rest = rest[size:]
	}
	return strings.TrimSpace(name + " " + version)
}
