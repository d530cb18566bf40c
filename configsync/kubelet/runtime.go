// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// A standInRuntime answers a kubelet in place of a container runtime: it is ready, uses cgroupfs, and has no pods,
// containers or images. It starts nothing. The protocol is gRPC over HTTP/2 without TLS; messages are encoded by
// hand, as four of them have content.
type standInRuntime struct {
	server *http.Server
	served sync.WaitGroup
	asked  chan struct{} // closed once the kubelet asks for the status: its main loop runs
	once   sync.Once
	driver bool // it tells the driver of cgroups, as newer runtimes do
}

// unimplemented is the status of a call that a runtime does not have.
const unimplemented = "12"

// startRuntime serves on a Unix socket until it is closed.
func startRuntime(socket string, tellsDriver bool) (*standInRuntime, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	r := &standInRuntime{asked: make(chan struct{}), driver: tellsDriver}
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	r.server = &http.Server{Handler: r, Protocols: protocols, ReadHeaderTimeout: time.Minute}
	r.served.Go(func() { _ = r.server.Serve(listener) }) // it ends with close
	return r, nil
}

// close ends all connections.
func (r *standInRuntime) close() error {
	err := r.server.Close()
	r.served.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// ServeHTTP implements http.Handler: one call.
func (r *standInRuntime) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	method := path.Base(req.URL.Path)
	w.Header().Set("Content-Type", "application/grpc")
	answer, ok := r.answerMethod(method)
	if !ok {
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", unimplemented)
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", "no such call")
		w.WriteHeader(http.StatusOK)
		return
	}
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(answer)))
	_, _ = w.Write(append(frame, answer...)) // the kubelet that is gone needs no answer
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
}

// answerMethod is the response to a call. An empty message is a list without elements.
func (r *standInRuntime) answerMethod(method string) ([]byte, bool) {
	switch method {
	case "Version":
		return encodeMessage(encodeText(1, "0.1.0"), encodeText(2, "belay"), encodeText(3, "2.0.0"),
			encodeText(4, "v1")), true
	case "Status":
		r.once.Do(func() { close(r.asked) })
		return encodeText(1, string(encodeMessage(encodeCondition("RuntimeReady"), encodeCondition("NetworkReady")))), true
	case "RuntimeConfig":
		if !r.driver {
			return nil, false
		}
		const cgroupfs = 1
		return encodeText(1, string(encodeNumber(1, cgroupfs))), true
	case "ImageFsInfo":
		filesystem := encodeMessage(encodeNumber(1, uint64(time.Now().UnixNano())), encodeText(2, string(encodeText(1, "/"))),
			encodeText(3, string(encodeNumber(1, 1))), encodeText(4, string(encodeNumber(1, 1))))
		return encodeMessage(encodeText(1, string(filesystem)), encodeText(2, string(filesystem))), true
	}
	return nil, strings.HasPrefix(method, "List") || method == "UpdateRuntimeConfig"
}

// lacksRuntimeConfig reports whether the runtime of the node says that it does not tell the driver of cgroups, so
// that the config decides. It is the only question that a prover has for a real runtime.
func lacksRuntimeConfig(ctx context.Context, socket string) bool {
	if socket == "" {
		return false
	}
	transport := newRuntimeTransport(socket)
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, settled)
	defer cancel()
	const call, noArguments = "http://localhost/runtime.v1.RuntimeService/RuntimeConfig", "\x00\x00\x00\x00\x00"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, call, strings.NewReader(noArguments))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)) // trailers come behind the body
	return cmp.Or(resp.Trailer.Get("Grpc-Status"), resp.Header.Get("Grpc-Status")) == unimplemented
}

// encodeCondition is a runtime condition that holds.
func encodeCondition(name string) []byte {
	return encodeText(1, string(encodeMessage(encodeText(1, name), encodeNumber(2, 1))))
}

// encodeText is a field of a message: a string, bytes, or a message.
func encodeText(field int, s string) []byte {
	const bytesType = 2
	b := binary.AppendUvarint(nil, uint64(field)<<3|bytesType)
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// encodeNumber is a field of a message.
func encodeNumber(field int, n uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3), n)
}

func encodeMessage(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

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
