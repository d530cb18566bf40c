// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
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
	answer, ok := r.answer(method)
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

// answer is the response to a call. An empty message is a list without elements.
func (r *standInRuntime) answer(method string) ([]byte, bool) {
	switch method {
	case "Version":
		return message(text(1, "0.1.0"), text(2, "belay"), text(3, "2.0.0"), text(4, "v1")), true
	case "Status":
		r.once.Do(func() { close(r.asked) })
		return text(1, string(message(condition("RuntimeReady"), condition("NetworkReady")))), true
	case "RuntimeConfig":
		if !r.driver {
			return nil, false
		}
		const cgroupfs = 1
		return text(1, string(number(1, cgroupfs))), true
	case "ImageFsInfo":
		filesystem := message(number(1, uint64(time.Now().UnixNano())), text(2, string(text(1, "/"))), text(3, string(number(1, 1))), text(4, string(number(1, 1))))
		return message(text(1, string(filesystem)), text(2, string(filesystem))), true
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

// condition is a runtime condition that holds.
func condition(name string) []byte {
	return text(1, string(message(text(1, name), number(2, 1))))
}

// text is a field of a message: a string, bytes, or a message.
func text(field int, s string) []byte {
	const bytesType = 2
	b := binary.AppendUvarint(nil, uint64(field)<<3|bytesType)
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// number is a field of a message.
func number(field int, n uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3), n)
}

func message(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
