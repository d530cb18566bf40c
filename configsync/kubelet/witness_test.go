// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// A stubRuntime answers Version on a Unix socket as a container runtime does.
type stubRuntime struct {
	socket string
	status string // of gRPC
	hang   bool
	server *http.Server
}

func (r *stubRuntime) start(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	r.server = &http.Server{Protocols: protocols, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if r.hang {
				<-req.Context().Done()
				return
			}
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = w.Write([]byte("\x00\x00\x00\x00\x20\x0a\x050.1.0\x12\x0acontainerd\x1a\x06v2.1.4"))
			w.Header().Set("Grpc-Status", r.status)
		})}
	go func() { _ = r.server.Serve(listener) }() // it ends with stop
}

func (r *stubRuntime) stop(t *testing.T) {
	t.Helper()
	if err := r.server.Close(); err != nil {
		t.Error(err)
	}
}

// stubProgram is a kubelet that can be executed.
func stubProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubelet")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func encodeDocument(fields map[string]any) func() []byte {
	return func() []byte {
		text, err := json.Marshal(fields)
		if err != nil {
			panic(err)
		}
		return text
	}
}

func crashExit() lkg.Exit {
	return lkg.Exit{Kind: lkg.ExitCrash, Detail: "exit status 1", Signature: "exit status 1"}
}

// C-36: an end of the kubelet while its runtime is away is no fault of the config, unless that alone names the place
// where none answers. An end after a failure of what lies below has no witness.
func TestAnEndWithoutARuntimeIsTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	runtime := &stubRuntime{socket: filepath.Join(dir, "cri.sock"), status: "0"}
	at := "unix://" + runtime.socket
	used := map[string]any{"containerRuntimeEndpoint": at}
	s := Subject{Command: []string{stubProgram(t), "--root-dir", dir}, Config: encodeDocument(used),
		Local: encodeDocument(map[string]any{"containerRuntimeEndpoint": at, "podLogsDir": dir}), StateDir: dir}
	w, err := NewWitness(s)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, fault lkg.Fault, signature string, witnessed bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		got := w.AttributeExit(ctx, crashExit())
		if got.Fault != fault || got.Signature != signature || got.Witnessed != witnessed || !strings.HasPrefix(got.Detail,
			"exit status 1") {
			t.Errorf("%s: %+v, want fault %q, signature %q, witnessed %t", what, got, fault, signature, witnessed)
		}
	}
	expect("no runtime", lkg.FaultEnvironment, "container runtime away: "+at, false)
	if err := w.checkRuntime(t.Context()); err == nil {
		t.Error("a runtime that is away answers")
	}
	runtime.start(t)
	expect("it has been away since the last end", "", "exit status 1", false)
	expect("it answers", "", "exit status 1", true)
	used["containerRuntimeEndpoint"] = at + ".other"
	expect("an endpoint of the config's own", "", "exit status 1", false)
	if err := (runtimeProbe{w}).Check(t.Context()); err == nil || errors.Is(err, configsync.ErrBelow) {
		t.Errorf("the probe says %v, want a plain failure: the config names an endpoint where no runtime is", err)
	}
	w.subject.Command = append(w.subject.Command, "--container_runtime_endpoint="+at)
	expect("a flag is stronger than the config", "", "exit status 1", true)
	runtime.status = "12"
	expect("a runtime without CRI", lkg.FaultEnvironment, "container runtime away: "+at, false)
	runtime.stop(t)
	expectUnchanged(t, w)
}

// expectUnchanged checks that ends which are explained stay as they are, and that a zero Witness says nothing.
func expectUnchanged(t *testing.T, w *Witness) {
	t.Helper()
	for _, e := range []lkg.Exit{{Kind: lkg.ExitPlanned}, {Kind: lkg.ExitCounted}, {Kind: lkg.ExitCrash,
		Fault: lkg.FaultNotExecuted}} {
		if got := w.AttributeExit(t.Context(), e); got.Fault != e.Fault || got.Signature != "" || got.Witnessed {
			t.Errorf("AttributeExit(%+v) = %+v, want it unchanged: it is explained", e, got)
		}
	}
	if got := (&Witness{}).AttributeExit(t.Context(), crashExit()); got.Fault != "" || got.Witnessed {
		t.Errorf("a zero Witness says %+v, want nothing", got)
	}
}

// C-36: a runtime that hangs, or has died, is a failure below every config.
func TestRuntimesThatHangOrDie(t *testing.T) {
	runtime := &stubRuntime{socket: filepath.Join(t.TempDir(), "cri.sock"), status: "0", hang: true}
	at := "unix://" + runtime.socket
	w, err := NewWitness(Subject{Command: []string{stubProgram(t), "--container-runtime-endpoint", at}})
	if err != nil {
		t.Fatal(err)
	}
	runtime.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := (runtimeProbe{w}).Check(ctx); !errors.Is(err, configsync.ErrBelow) {
		t.Errorf("a runtime that hangs: %v, want ErrBelow", err)
	}
	runtime.stop(t)
	if err := (runtimeProbe{w}).Check(t.Context()); !errors.Is(err, configsync.ErrBelow) ||
		err.Error() != "the container runtime does not answer at "+at+": connect: no such file or directory" {
		t.Errorf("a runtime that died: %v, want ErrBelow and the place", err)
	}
}

// C-36: an endpoint that only the config in use names speaks for the environment only once a runtime has answered
// there.
func TestAnEndpointOfTheConfigSpeaksOnceItHasAnswered(t *testing.T) {
	runtime := &stubRuntime{socket: filepath.Join(t.TempDir(), "cri.sock"), status: "0"}
	at := "unix://" + runtime.socket
	w, err := NewWitness(Subject{Command: []string{stubProgram(t)},
		Config: encodeDocument(map[string]any{"containerRuntimeEndpoint": at})})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.checkRuntime(t.Context()); err == nil || errors.Is(err, configsync.ErrBelow) {
		t.Errorf("before a runtime has answered: %v, want a plain failure", err)
	}
	runtime.start(t)
	version, err := askRuntime(t.Context(), at)
	if err != nil || version != "containerd v2.1.4" {
		t.Errorf("the runtime says %q, %v, want its name and version", version, err)
	}
	if err := w.checkRuntime(t.Context()); err != nil {
		t.Error(err)
	}
	runtime.stop(t)
	if err := w.checkRuntime(t.Context()); !errors.Is(err, configsync.ErrBelow) {
		t.Errorf("once a runtime has answered: %v, want ErrBelow", err)
	}
}

// C-36: an endpoint is shared where the command line or the local config names it. Where no config names one, or that
// in use is not known, it is not.
func TestSharedEndpoints(t *testing.T) {
	names := func(endpoint string) func() []byte {
		return encodeDocument(map[string]any{"containerRuntimeEndpoint": endpoint})
	}
	none, other := encodeDocument(map[string]any{"maxPods": 10}), "unix:///run/other.sock"
	broken := func() []byte { return []byte("{") }
	for what, c := range map[string]struct {
		used, local func() []byte
		endpoint    string
		shared      bool
	}{
		"neither names one":                   {none, none, defaultEndpoint, false},
		"none, and there is no local config":  {none, nil, defaultEndpoint, false},
		"the local config names the default":  {none, names(defaultEndpoint), defaultEndpoint, false},
		"the config drops that of the local":  {none, names(other), defaultEndpoint, false},
		"only the config names one":           {names(other), none, other, false},
		"only the config names one, no local": {names(other), nil, other, false},
		"both name the same":                  {names(other), names(other), other, true},
		"the config is not known":             {nil, none, defaultEndpoint, false},
		"nothing runs":                        {func() []byte { return nil }, none, defaultEndpoint, false},
		"the config can't be read":            {broken, none, defaultEndpoint, false},
	} {
		s := &Subject{Command: []string{"/usr/bin/kubelet"}, Config: c.used, Local: c.local}
		if endpoint, shared := s.runtimeEndpoint(); endpoint != c.endpoint || shared != c.shared {
			t.Errorf("%s: %q, shared %t, want %q, %t", what, endpoint, shared, c.endpoint, c.shared)
		}
	}
}

// C-36: a program that is missing, cut off or not one, and a disk that is broken, are no fault of a config.
func TestProgramsThatCannotBeExecuted(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text []byte
		mode os.FileMode
		want string
	}{
		"elf":      {whole, 0o700, ""},
		"script":   {[]byte("#!"), 0o700, ""},
		"cut":      {whole[:len(whole)/2], 0o700, "is no whole ELF file"},
		"empty":    {nil, 0o700, `has 0 bytes and begins with "", want an ELF file or a script`},
		"text":     {[]byte("<html>"), 0o700, `has 6 bytes and begins with "<htm"`},
		"no x bit": {whole[:100], 0o600, "has mode -rw-------, want a file that may be executed"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, c.text, c.mode); err != nil {
			t.Fatal(err)
		}
		err := checkProgram(path)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, configsync.ErrBelow) ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// C-36: what can't be looked at, or lies below a file, is no fault of a config; a directory that is not there yet is
// none at all.
func TestHostsThatAreBroken(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "elf"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := NewWitness(Subject{Command: []string{filepath.Join(dir, "absent"), "--root-dir=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	if err := (hostProbe{w}).Check(t.Context()); !errors.Is(err, configsync.ErrBelow) || !strings.HasSuffix(err.Error(),
		"can't be looked at: no such file or directory") {
		t.Errorf("a program that is gone: %v, want ErrBelow and why", err)
	}
	if got := w.AttributeExit(t.Context(), crashExit()); got.Fault != lkg.FaultEnvironment ||
		got.Signature != "program can't be executed: "+filepath.Join(dir, "absent") {
		t.Errorf("its end is %+v, want an environment fault", got)
	}
	if err := checkDirectory(filepath.Join(dir, "not", "yet", "made")); err != nil {
		t.Errorf("a directory that the kubelet will make: %v, want nil", err)
	}
	if err := checkDirectory(filepath.Join(dir, "elf", "below")); !errors.Is(err, configsync.ErrBelow) {
		t.Errorf("a directory below a file: %v, want ErrBelow", err)
	}
}

// L-CS-34: the kubelet's API is well if it answers over TLS, however it answers; where it says that one of its own
// checks fails it is not, and one that was on before must not be switched off.
func TestKubeletAPIProbe(t *testing.T) {
	status, body := http.StatusUnauthorized, "Unauthorized"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || len(r.Header.Values("Authorization")) > 0 {
			t.Errorf("the probe asks %s with %v, want /healthz without credentials", r.URL, r.Header)
		}
		http.Error(w, body, status)
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{"address": "0.0.0.0", "port": 1}
	p := apiProbe{&Subject{Command: []string{"kubelet", "--port", port}, Config: encodeDocument(config)}}
	compare := func() error { return p.Compare(t.Context(), []byte(apiAnswered), false) }
	before, err := p.TakeBaseline(t.Context())
	if err != nil || string(before) != apiAnswered || compare() != nil || p.Check(t.Context()) != nil {
		t.Errorf("Baseline = %q, %v, Compare = %v; want an answer: a refusal is one", before, err, compare())
	}
	status, body = http.StatusInternalServerError, "Internal Error: the API server is away"
	if err := compare(); err != nil {
		t.Errorf("trouble with who asks: %v, want nil: the API serves", err)
	}
	body = "[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n"
	if err := compare(); err == nil || !strings.HasSuffix(err.Error(),
		"/healthz answers 500: [-]syncloop failed: reason withheld") {
		t.Errorf("a sync loop that hangs: %v, want its name", err)
	}
	expectSwitchedOff(t, p, config)
	server.Close()
	if err := compare(); err == nil ||
		err.Error() != "the kubelet's API does not answer at https://127.0.0.1:"+port+": connect: connection refused" {
		t.Errorf("an API that is gone: %v, want the place and the cause alone", err)
	}
	if before, err := p.TakeBaseline(t.Context()); err != nil || string(before) != apiSilent {
		t.Errorf("TakeBaseline = %q, %v, want that it is silent", before, err)
	}
}

// expectSwitchedOff checks what becomes of an API that the config switches off.
func expectSwitchedOff(t *testing.T, p apiProbe, config map[string]any) {
	t.Helper()
	config["enableServer"] = false
	defer delete(config, "enableServer")
	err := p.Compare(t.Context(), []byte(apiAnswered), false)
	if err == nil || !strings.Contains(err.Error(), "(enableServer: false)") {
		t.Errorf("an API that was switched off: %v, want an error that names the field", err)
	}
	if err := errors.Join(p.Check(t.Context()), p.Compare(t.Context(), []byte(apiSilent), false)); err != nil {
		t.Errorf("an API that was off before: %v, want nil", err)
	}
}

// The options are checked at once.
func TestOptionsOfProbes(t *testing.T) {
	if _, err := NewWitness(Subject{}); err == nil || !strings.Contains(err.Error(), "Subject.Command is required") {
		t.Errorf("NewWitness of nothing: %v, want an error that names the command", err)
	}
	_, err := NewProbes(nil, "", &Witness{})
	for _, want := range []string{"client is required", "node is required", "the witness is a zero value"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewProbes of nothing: %v, want %q", err, want)
		}
	}
}
