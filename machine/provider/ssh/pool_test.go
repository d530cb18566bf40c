// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
)

// standIn is used as ssh. It runs what is sent on this machine, or has a real ssh run it on a real sshd, and has faults.
const standIn = `#!/bin/sh
faults=%s real=%s
port=0 last=
for a; do
	[ "$last" != -p ] || port=$a
	last=$a
done
fault() { [ -e "$faults/$1" ] || [ -e "$faults/$1.$port" ]; }
refuse() { echo "$1" >&2; exit 255; }
if fault hang; then exec sleep 60; fi
if [ "$real" ]; then
	if fault unavailable; then exec "$real" -o ControlPath=none -p 1 "$@"; fi
	if fault unauthorized; then exec "$real" -o ControlPath=none -o PubkeyAuthentication=no "$@"; fi
	if fault unknownkey; then exec "$real" -o ControlPath=none -o UserKnownHostsFile=/dev/null "$@"; fi
else
	if fault unavailable; then refuse "ssh: connect to host 127.0.0.1 port $port: Connection refused"; fi
	if fault unauthorized; then refuse "root@127.0.0.1: Permission denied (publickey)."; fi
	if fault unknownkey; then refuse "Host key verification failed."; fi
fi
remote() { if [ "$real" ]; then "$real" "$@"; else sh -s; fi; }
plain() { if [ "$real" ]; then exec "$real" "$@"; else exec sh -s; fi; }
if fault lost; then
	tmp=$(mktemp "$faults/tmp.XXXXXX")
	cat >"$tmp"
	if grep -q "^b_op='swap'" "$tmp" && mkdir "$faults/taken" 2>/dev/null; then
		remote "$@" <"$tmp" >/dev/null
		refuse "Connection to host closed by remote host: Connection closed"
	fi
	remote "$@" <"$tmp"
	exit
fi
if [ -e "$faults/point" ]; then
	at=$(cat "$faults/point")
	{
		printf 'b_point() { printf x >>%%s; [ "$(wc -c <%%s)" != %%s ] || kill -KILL $$; }\n' "$faults/points" "$faults/points" "$at"
		sed 's/: point/b_point/'
	} | remote "$@"
	exit
fi
plain "$@"
`

// A pool is a number of hosts in directories of this machine.
type pool struct {
	t      testing.TB
	dir    string
	disks  string // where the directories of hosts are
	real   string // the real ssh, or ""
	args   []string
	known  string
	hosts  []Host
	config func(more map[string]any) []byte
}

// hosts are as many as the longest list of the suite of providers has: most calls ask each of them.
const hosts = 6

func newPool(t testing.TB, n int) *pool {
	p := &pool{t: t, dir: t.TempDir(), disks: fastDir(t)}
	for i := range n {
		name := fmt.Sprintf("h%d", i)
		p.hosts = append(p.hosts, Host{
			Name: name, Address: "127.0.0.1", Port: 1000 + i, Directory: filepath.Join(p.disks, name), Labels: map[string]string{"zone": string(rune('a' + i%2))},
		})
		p.put("boot."+name, fmt.Sprintf("boot-%d\n", i))
	}
	p.config = p.scripts
	p.put("faults/none", "")
	p.install()
	t.Cleanup(p.stop)
	return p
}

// fastDir is a directory in memory where there is one: the tests wait for the disk otherwise.
func fastDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "belay-ssh-") //nolint:usetesting // t.TempDir is on the disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// install writes the command that is used as ssh.
func (p *pool) install() {
	testproc.WriteProgram(p.t, p.path("ssh"), fmt.Sprintf(standIn, quote(p.path("faults")), quote(p.real)))
}

func (p *pool) path(name string) string { return filepath.Join(p.dir, name) }

func (p *pool) put(name, text string) {
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pool) read(name string) string {
	text, err := os.ReadFile(p.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.t.Fatal(err)
	}
	return string(text)
}

// inject begins a fault, for all hosts or that with a port, and returns what ends it.
func (p *pool) inject(fault string) func() {
	p.put("faults/"+fault, "")
	return func() {
		_ = os.Remove(p.path("faults/" + fault))
		_ = os.Remove(p.path("faults/taken")) // of a lost reply
	}
}

// settings are what another process needs to use the pool.
type settings struct {
	Dir, Command, Known, Control string
	Args                         []string
	Hosts                        []Host
}

func (p *pool) settings() settings {
	s := settings{Dir: p.dir, Command: p.path("ssh"), Known: p.known, Args: p.args, Hosts: p.hosts}
	if p.real != "" {
		s.Control = p.path("c")
	}
	return s
}

func (s settings) options() Options {
	return Options{Hosts: s.Hosts, Command: s.Command, Args: s.Args, KnownHosts: s.Known, ControlDir: s.Control}
}

func (s settings) core() (*core, error) { return s.with(s.options()) }

func (s settings) with(o Options) (*core, error) {
	c, err := newCore(o)
	if err == nil {
		c.bootFile = func(h Host) string { return filepath.Join(s.Dir, "boot."+h.Name) }
	}
	return c, err
}

func typed(c *core) *Provider {
	return &Provider{made{provider.Typed[Config](provider.Kind{APIVersion: apiVersion, Kind: kindName}, c)}, c}
}

func (p *pool) provider() *Provider {
	return typed(p.core())
}

func (p *pool) core() *core {
	got, err := p.settings().core()
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

// scripts are those of a machine that is one process.
func (p *pool) scripts(more map[string]any) []byte {
	machine := "m=" + quote(p.dir) + "/run.$BELAY_HOST\n"
	run := machine + "p=$(cat $m.pid 2>/dev/null) && kill -0 $p 2>/dev/null || { setsid sleep 1000000 </dev/null >/dev/null 2>&1 & echo $! >$m.pid; echo >>$m.boots; }\n"
	kill := machine + "if p=$(cat $m.pid 2>/dev/null); then kill -KILL $p; rm -f $m.pid; fi\n"
	config := map[string]any{
		"apiVersion": apiVersion, "kind": kindName,
		"bootstrap": "while [ -e " + quote(p.path("faults/slow")) + " ]; do sleep 0.05; done\n" +
			machine + "echo begins >>$m.begun\nls \"$BELAY_JOIN\" >$m.join\ncat >$m.stdin\n" + run,
		"update":        machine + "echo $BELAY_KUBELET_VERSION >$m.updated\n",
		"start":         run,
		"stop":          kill,
		"stopped":       machine + "[ ! -e $m.pid ]",
		"rebootCommand": kill + "read -r l </proc/$$/stat; set -- ${l##*) }; kill -KILL $4; echo boot-$$-$RANDOM >$m.boot; mv $m.boot " + quote(p.dir) + "/boot.$BELAY_HOST",
	}
	for field, v := range more {
		config[field] = v
		if v == nil {
			delete(config, field)
		}
	}
	data, err := json.Marshal(config)
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

// hostOf is the name of the host in a ProviderID.
func hostOf(ref provider.Ref) string {
	_, host, _ := named(ref)
	return host
}

func (p *pool) pid(host string) int {
	pid, err := strconv.Atoi(strings.TrimSpace(p.read("run." + host + ".pid")))
	if err != nil {
		return 0
	}
	return pid
}

// runs reports whether the machine on a host runs.
func (p *pool) runs(host string) bool {
	pid := p.pid(host)
	return pid != 0 && testproc.Ended(pid) != nil
}

func (p *pool) count(name string) int { return strings.Count(p.read(name), "\n") }

// inventory counts without asking the provider.
func (p *pool) inventory() (machinetest.Inventory, error) {
	var all machinetest.Inventory
	for _, h := range p.hosts {
		claim, err := os.ReadFile(filepath.Join(h.Directory, "claim.json"))
		if err == nil && !strings.Contains(string(claim), `"phase":"Retained"`) {
			all.Instances++
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return all, err
		}
		if _, err := os.Stat(h.data()); err == nil {
			all.Disks++
		}
	}
	return all, nil
}

// clean ends the machines and forgets all claims.
func (p *pool) clean() error {
	for _, h := range p.hosts {
		if p.runs(h.Name) {
			_ = syscall.Kill(p.pid(h.Name), syscall.SIGKILL) // it may have ended
		}
		if err := os.RemoveAll(h.Directory); err != nil {
			return err
		}
	}
	return nil
}

func (p *pool) stop() {
	for _, f := range []string{"slow", "hang"} {
		_ = os.Remove(p.path("faults/" + f)) // so that what waits for it ends
	}
	// The scripts that run still have files in the directories, which are removed after this. One of them may only now start its machine.
	if err := testproc.Poll(20*time.Second, func() error {
		for _, h := range p.hosts {
			if p.runs(h.Name) {
				_ = syscall.Kill(p.pid(h.Name), syscall.SIGKILL) // it may have ended
			}
		}
		left := append(testproc.Naming(p.dir), testproc.Naming(p.disks)...)
		if len(left) > 0 {
			return fmt.Errorf("%d processes of the pool are left, as %q", len(left), left[0])
		}
		return nil
	}); err != nil {
		p.t.Error(err)
	}
}

// request asks for a machine of a config.
func (p *pool) request(name string, config []byte) provider.CreateRequest {
	o := provider.Owner{Cluster: "c", Namespace: "n", Name: name, UID: "uid-" + name, Incarnation: 1}
	d := provider.Desired{Config: config}
	return provider.CreateRequest{Token: provider.Token(o.Cluster, o.UID, 1), Owner: o, Digest: d.Digest(), Desired: d}
}

func deletion(r provider.CreateRequest, mode provider.Mode) provider.DeleteRequest {
	return provider.DeleteRequest{Ref: provider.Ref{Token: r.Token}, Mode: mode, Cluster: r.Owner.Cluster}
}

// must makes a call until it is done.
func must(t testing.TB, what string, call func() (provider.Progress, error)) provider.Progress {
	t.Helper()
	var p provider.Progress
	if err := testproc.Poll(30*time.Second, func() (err error) {
		if p, err = call(); err == nil && !p.Done {
			err = fmt.Errorf("it is not done: %s", p.Message)
		}
		return err
	}); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return p
}

// started creates a machine and waits for it to run.
func started(t testing.TB, p provider.Provider, r provider.CreateRequest) provider.Instance {
	t.Helper()
	var i provider.Instance
	if err := testproc.Poll(30*time.Second, func() (err error) {
		if i, err = p.Create(context.WithoutCancel(t.Context()), r); err == nil && i.State != provider.Running {
			err = fmt.Errorf("the machine is %s: %s", i.State, i.Message)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return i
}
