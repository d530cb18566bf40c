// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A standInRuntime answers a kubelet in place of a container runtime: it is ready, uses cgroupfs, and has no pods, containers or images.
// It starts nothing. The protocol is gRPC over HTTP/2 without TLS; messages are encoded by hand, as four of them have content.
type standInRuntime struct {
	server  *http.Server
	served  sync.WaitGroup
	asked   chan struct{} // closed once the kubelet asks for the status: its main loop runs
	once    sync.Once
	started atomic.Int64 // attempts to start something
}

// startRuntime serves on a Unix socket until it is closed.
func startRuntime(socket string) (*standInRuntime, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	r := &standInRuntime{asked: make(chan struct{})}
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
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "12") // unimplemented
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
		const cgroupfs = 1
		return text(1, string(number(1, cgroupfs))), true
	case "ImageFsInfo":
		filesystem := message(number(1, uint64(time.Now().UnixNano())), text(2, string(text(1, "/"))), text(3, string(number(1, 1))), text(4, string(number(1, 1))))
		return message(text(1, string(filesystem)), text(2, string(filesystem))), true
	}
	switch {
	case strings.HasPrefix(method, "List"), method == "UpdateRuntimeConfig":
		return nil, true
	case method == "RunPodSandbox":
		r.started.Add(1)
	}
	return nil, false
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
