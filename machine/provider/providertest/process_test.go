// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/providertest"
)

// A process is a cloud in a process of its own, which can be killed and goes on.
type process struct {
	served
	program, dir string
	cmd          *exec.Cmd
	errs         *testproc.Buffer
	address      atomic.Pointer[string] // where it listens now
}

// newProcess builds examples/internal/fakecloud and starts it.
func newProcess(t *testing.T) *process {
	t.Helper()
	p := &process{served: served{t: t}, program: filepath.Join(t.TempDir(), "fakecloud"), dir: t.TempDir(), errs: &testproc.Buffer{}}
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../../../examples", "-o", p.program, "./internal/fakecloud")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the fake cloud: %v\n%s", err, out)
	}
	p.start()
	// Nobody keeps the port of a process that was killed for the next one: callers have one name for all of them.
	transport := &http.Transport{MaxIdleConnsPerHost: 16, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, *p.address.Load())
	}}
	p.served = serve(t, providertest.Options{URL: "http://cloud", HTTP: &http.Client{Transport: transport}})
	return p
}

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(p.program, "--state", p.dir)
	p.cmd.Stderr = p.errs
	_, url := testproc.Start(p.t, p.cmd)
	address := strings.TrimPrefix(url, "http://")
	p.address.Store(&address)
}

// restart kills it, if it was not killed, and starts it again.
func (p *process) restart() {
	p.t.Helper()
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
	p.start()
}

// died reports whether it has been killed. Until it is, it answers.
func (p *process) died(ctx context.Context) bool {
	_, err := p.admin.Faults(ctx)
	return err != nil
}

func (p *process) crash(ctx context.Context, call machinetest.Call, point int) (bool, error) {
	p.inject(crashAt(point))
	err := call.Do(ctx, p.client())
	if p.died(ctx) {
		wantClass(p.t, "a call in which the server was killed", err, provider.Unavailable)
		p.restart()
		return true, nil
	}
	return false, p.admin.Clear(ctx)
}

// R-MA-02, R-MA-06, R-MA-08, R-MA-24: the cloud keeps what a provider promises when it is a process, which SIGKILL ends before each operation on
// its files, and after the last.
func TestProcessConformance(t *testing.T) {
	p := newProcess(t)
	h := p.harness()
	h.Name, h.Many, h.Crash = "fake, as a process", 100, p.crash
	h.Inject = func(f machinetest.Fault) func() { return p.suiteFault(f, 2*time.Second, func() {}) }
	machinetest.Run(t, h)
}
