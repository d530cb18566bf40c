// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/internal/tier"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
)

// newSSHDPool is a pool whose hosts are servers of their own, each with its port, key and directory.
func newSSHDPool(t *testing.T, n int) *pool {
	sshd := lookFor(t, "sshd", "openssh-server")
	keygen := lookFor(t, "ssh-keygen", "openssh-client")
	client := lookFor(t, "ssh", "openssh-client")
	p := newPool(t, n)
	p.real = client
	p.put("c/none", "")
	p.install()
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where sshd leaves its rights behind
			t.Fatal(err)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	run(t, keygen, "-q", "-t", "ed25519", "-N", "", "-f", p.path("id"))
	p.args = []string{"-F", "none", "-i", p.path("id"), "-o", "IdentitiesOnly=yes"}
	p.known = p.path("known")
	var known strings.Builder
	for i := range p.hosts {
		key := p.path(p.hosts[i].Name + ".key")
		run(t, keygen, "-q", "-t", "ed25519", "-N", "", "-f", key)
		p.hosts[i].User = me.Username
		p.hosts[i].Port = p.serve(sshd, p.hosts[i].Name, key)
		fmt.Fprintf(&known, "[127.0.0.1]:%d %s", p.hosts[i].Port, p.read(p.hosts[i].Name+".key.pub"))
	}
	p.put("known", known.String())
	return p
}

// lookFor skips a test that needs a program. sshd wants to be called by its whole path.
func lookFor(t *testing.T, program, debian string) string {
	tier.Require(t)
	path, err := exec.LookPath(program)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + program); err != nil {
			t.Skipf("there is no %s: install the Debian package %s", program, debian)
		}
	}
	return path
}

func run(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", program, err, out)
	}
}

// serve starts a server on a port that is free, and ends it with the test. A shell there reads no settings of whoever runs the tests.
func (p *pool) serve(sshd, name, key string) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close() // it was a question
	p.put(name+".conf", fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\nUsePAM no\n"+
		"PasswordAuthentication no\nMaxStartups 100\nMaxSessions 100\nPermitRootLogin prohibit-password\nPrintMotd no\nSetEnv HOME=%s\n", port, key, p.path("id.pub"), p.dir))
	cmd := exec.Command(sshd, "-D", "-f", p.path(name+".conf"), "-E", p.path(name+".log"))
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	if err := testproc.Poll(20*time.Second, func() error {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			err = c.Close()
		}
		return err
	}); err != nil {
		p.t.Fatalf("sshd of %q: %v: %s", name, err, p.read(name+".log"))
	}
	return port
}

// disconnect ends the connections that the client keeps open.
func (p *pool) disconnect() {
	sockets, err := filepath.Glob(p.path("c/*"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s := range sockets {
		_ = exec.Command(p.real, "-F", "none", "-o", "ControlPath="+s, "-O", "exit", "127.0.0.1").Run() // it may have ended
	}
}

// The rules of providers, over real servers.
func TestConformanceOverSSHD(t *testing.T) {
	tier.System(t, tier.SSHD)
	if os.Getenv("BELAY_MACHINE_SSHD") == "" {
		t.Skip("takes minutes; TestConformance is the same over a command in the place of ssh: make machine-proof, or BELAY_MACHINE_SSHD=1")
	}
	p := newSSHDPool(t, hosts)
	t.Cleanup(p.disconnect)
	machinetest.Run(t, p.harness("ssh"))
}

// A host whose key is another one, or a user who is refused, is Unauthorized; a script runs on when its connection is cut.
func TestRealRefusals(t *testing.T) {
	tier.System(t, tier.SSHD)
	p := newSSHDPool(t, 1)
	t.Cleanup(p.disconnect)
	c := p.provider()
	for fault, want := range map[string]provider.Class{
		"unknownkey": provider.Unauthorized, "unauthorized": provider.Unauthorized, "unavailable": provider.Unavailable,
	} {
		end := p.inject(fault)
		_, err := c.Get(t.Context(), provider.Ref{Token: "a-b-1"})
		end()
		if provider.ClassOf(err) != want {
			t.Errorf("%s: %v, want %s", fault, err, want)
		}
	}
	slow := p.inject("slow")
	r := p.request("m", p.config(nil))
	if i, err := c.Create(t.Context(), r); err != nil || i.State != provider.Pending {
		t.Fatalf("Create: %+v, %v, want it Pending", i, err)
	}
	p.disconnect()
	slow()
	started(t, c, r)
	if n := p.count("run.h0.begun"); n != 1 {
		t.Errorf("the script was begun %d times, want once: the connection is not its life", n)
	}
	must(t, "Delete", func() (provider.Progress, error) {
		return c.Delete(context.WithoutCancel(t.Context()), deletion(r, provider.Destroy))
	})
}
