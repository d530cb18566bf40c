// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/belayproject/belay/configsync"
)

// A Server is a socket that was opened. Make it with [Listen], then call [Server.Run].
type Server struct {
	dir      string
	listener *net.UnixListener
}

// Listen opens the socket in dir, in place of one that a killed agent left. The caller holds the lock of the state directory:
// nobody else serves it. The error names the directory.
func Listen(dir string) (*Server, error) {
	s := &Server{dir: dir}
	err := at(dir, "", func(d string) error {
		temp, final := filepath.Join(d, SocketName+".new"), filepath.Join(d, SocketName)
		if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false)
		if err := errors.Join(os.Chmod(temp, 0o600), os.Rename(temp, final)); err != nil {
			return errors.Join(err, l.Close(), os.Remove(temp))
		}
		s.listener = l
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("opening the admin socket in %q: %w", dir, err)
	}
	return s, nil
}

// Run serves a until ctx ends, waits for the calls that are under way, and removes the socket.
func (s *Server) Run(ctx context.Context, a Agent) error {
	server := &http.Server{
		Handler: handler(a), ReadTimeout: callTimeout, WriteTimeout: 2 * callTimeout, MaxHeaderBytes: 8 << 10,
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(s.listener) }()
	var err error
	select {
	case <-ctx.Done():
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		err = server.Shutdown(stop)
		if ended := <-done; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
	case err = <-done:
	}
	return errors.Join(err, s.remove())
}

// Close gives up a server that never ran.
func (s *Server) Close() error { return errors.Join(s.listener.Close(), s.remove()) }

func (s *Server) remove() error {
	err := os.Remove(filepath.Join(s.dir, SocketName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func handler(a Agent) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathStatus, func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(ctx context.Context) (any, error) { return a.Status(ctx) })
	})
	mux.HandleFunc("POST "+pathForgetBad, func(w http.ResponseWriter, r *http.Request) {
		change(w, r, func(ctx context.Context, q request) error { return a.ForgetBad(ctx, q.UID) })
	})
	mux.HandleFunc("POST "+pathUseLocal, func(w http.ResponseWriter, r *http.Request) {
		change(w, r, func(ctx context.Context, q request) error { return a.UseLocal(ctx, q.Reason) })
	})
	return mux
}

// change reads the request of a call that changes something.
func change(w http.ResponseWriter, r *http.Request, act func(context.Context, request) error) {
	answer(w, r, func(ctx context.Context) (any, error) {
		var q request
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBodyBytes))
		if err == nil {
			err = configsync.DecodeStrict(body, &q)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the request: %w", err)
		}
		return struct{}{}, act(ctx, q)
	})
}

// answer runs the call with a deadline and writes what came of it.
func answer(w http.ResponseWriter, r *http.Request, call func(context.Context) (any, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	body, err := call(ctx)
	code := http.StatusOK
	if err != nil {
		body, code = failure{Error: err.Error(), Absent: errors.Is(err, fs.ErrNotExist)}, http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a client that went away needs no answer
}
