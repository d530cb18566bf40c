// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/provider"
)

// state is what a host of the pool is.
func (p *pool) state(host string) HostState {
	p.t.Helper()
	all, err := p.provider().Hosts(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, h := range all {
		if h.Name == host {
			return h.State
		}
	}
	return ""
}

// A host goes from Free to Reserved, InUse, Retained and back, and its data is kept until it is destroyed.
func TestStatesOfAHost(t *testing.T) {
	p := newPool(t, 1)
	c, r := p.provider(), p.request("m", p.config(nil))
	want := func(state HostState) {
		t.Helper()
		if got := p.state("h0"); got != state {
			t.Errorf("the host is %s, want %s", got, state)
		}
	}
	want(hostFree)
	slow := p.inject("slow")
	if _, err := c.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	want(hostReserved)
	slow()
	started(t, c, r)
	want(hostInUse)
	must(t, "Retain", func() (provider.Progress, error) { return c.Delete(t.Context(), deletion(r, provider.Retain)) })
	want(hostRetained)
	must(t, "Destroy", func() (provider.Progress, error) { return c.Delete(t.Context(), deletion(r, provider.Destroy)) })
	want(hostFree)
	end := p.inject("unavailable")
	want(hostUnknown)
	end()
}

// What can't be cleaned up is dirty: not offered, listed as broken, and freed by Destroy once cleanup succeeds.
func TestFailedCleanupIsDirty(t *testing.T) {
	p := newPool(t, 1)
	fails := p.path("fails")
	p.put("fails", "")
	c, r := p.provider(), p.request("m", p.config(map[string]any{"cleanup": "echo secret-of-the-script; [ ! -e " + quote(fails) + " ]"}))
	i := started(t, c, r)
	p.mkdata("file")
	p.wantDirty(c, r, i)
	if got := must(t, "Retain", func() (provider.Progress, error) { return c.Delete(t.Context(), deletion(r, provider.Retain)) }); !got.Stopped {
		t.Errorf("Retain of what is dirty: %+v, want Stopped", got)
	}
	if err := os.Remove(fails); err != nil {
		t.Fatal(err)
	}
	must(t, "Clean", func() (provider.Progress, error) { return c.Clean(t.Context(), "h0") })
	if left, err := p.inventory(); err != nil || left.Instances+left.Disks != 0 || p.state("h0") != hostFree {
		t.Errorf("the host holds %+v (%v) and is %s, want nothing and Free", left, err, p.state("h0"))
	}
}

// wantDirty destroys a machine whose cleanup fails.
func (p *pool) wantDirty(c *Provider, r provider.CreateRequest, i provider.Instance) {
	t := p.t
	t.Helper()
	var err error
	_ = testproc.Poll(20*time.Second, func() error { // the call that sees it fail
		if _, err = c.Delete(t.Context(), deletion(r, provider.Destroy)); err == nil {
			return errors.New("no error yet")
		}
		return nil
	})
	if provider.ClassOf(err) != provider.Internal || !strings.Contains(err.Error(), "exit code 1") || strings.Contains(err.Error(), "secret") {
		t.Errorf("Destroy: %v, want Internal with the exit code alone", err)
	}
	if _, err := os.Stat(filepath.Join(p.hosts[0].data(), "file")); err != nil || p.state("h0") != hostDirty {
		t.Errorf("the data is there: %v; the host is %s, want Dirty", err, p.state("h0"))
	}
	if got, err := c.Get(t.Context(), i.Ref()); err != nil || got.State != provider.Broken || got.Message == "" {
		t.Errorf("Get: %+v, %v, want Broken with a message", got, err)
	}
	_, err = c.Create(t.Context(), p.request("other", p.config(nil)))
	if provider.ClassOf(err) != provider.Stockout || !strings.Contains(err.Error(), "1 are dirty") {
		t.Errorf("Create: %v, want Stockout that names the dirty host", err)
	}
}

// Data that nobody claims is not wiped by the next machine, and not offered: an administrator decides.
func TestDataWithoutClaimIsDirty(t *testing.T) {
	p := newPool(t, 1)
	c := p.provider()
	p.mkdata(".hidden")
	if got := p.state("h0"); got != hostDirty {
		t.Errorf("the host is %s, want Dirty", got)
	}
	if _, err := c.Create(t.Context(), p.request("m", p.config(nil))); provider.ClassOf(err) != provider.Stockout {
		t.Errorf("Create: %v, want Stockout", err)
	}
	must(t, "Clean", func() (provider.Progress, error) { return c.Clean(t.Context(), "h0") })
	if got := p.state("h0"); got != hostFree {
		t.Errorf("after Clean the host is %s, want Free", got)
	}
	started(t, c, p.request("m", p.config(nil)))
	if _, err := c.Clean(t.Context(), "h0"); provider.ClassOf(err) != provider.Conflict || !p.runs("h0") {
		t.Errorf("Clean of a host in use: %v, want Conflict", err)
	}
}

func (p *pool) mkdata(name string) {
	if err := os.MkdirAll(p.hosts[0].data(), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.hosts[0].data(), name), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// R-MA-24: Destroy wipes the data of the machine and nothing that a link in it leads to.
func TestWipeStaysInTheData(t *testing.T) {
	p := newPool(t, 1)
	c, r := p.provider(), p.request("m", p.config(nil))
	started(t, c, r)
	p.put("precious/file", "precious")
	for name, target := range map[string]string{"dir": p.path("precious"), "up": ".."} {
		if err := os.Symlink(target, filepath.Join(p.hosts[0].data(), name)); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "Destroy", func() (provider.Progress, error) { return c.Delete(t.Context(), deletion(r, provider.Destroy)) })
	if p.read("precious/file") != "precious" || p.count("run.h0.boots") != 1 {
		t.Error("something beside the data was wiped")
	}
}

// A machine whose stop script says that it has stopped, and whose process is there, is not stopped.
func TestStopNeedsProof(t *testing.T) {
	p := newPool(t, 1)
	p.put("lies", "")
	c := p.provider()
	honest := "p=$(cat " + quote(p.dir) + "/run.$BELAY_HOST.pid); [ -e " + quote(p.path("lies")) + " ] || kill -KILL $p\n"
	r := p.request("m", p.config(map[string]any{"stop": honest, "stopped": nil}))
	started(t, c, r)
	asked := 0
	if err := testproc.Poll(time.Minute, func() error { // the script needs its time to say so, and is then asked again
		got, err := c.Delete(t.Context(), deletion(r, provider.Destroy))
		if err != nil || got.Done || got.Stopped || !p.runs("h0") {
			t.Fatalf("Delete: %+v, %v, want it to wait for the process", got, err)
		}
		if asked++; asked < 4 || !strings.Contains(got.Message, "descriptor 8") {
			return fmt.Errorf("Delete: %+v, want a message about descriptor 8", got)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := os.Remove(p.path("lies")); err != nil {
		t.Fatal(err)
	}
	must(t, "Destroy", func() (provider.Progress, error) { return c.Delete(t.Context(), deletion(r, provider.Destroy)) })
	if p.runs("h0") {
		t.Error("Destroy is done and the process runs")
	}
}

// A machine that the script which checks it does not call stopped is not stopped, and the exit code says why.
func TestStoppedScriptIsAsked(t *testing.T) {
	p := newPool(t, 1)
	c, r := p.provider(), p.request("m", p.config(map[string]any{"stopped": "exit 3"}))
	started(t, c, r)
	err := testproc.Poll(20*time.Second, func() error {
		got, err := c.Delete(t.Context(), deletion(r, provider.Retain))
		if got.Done || got.Stopped {
			t.Fatalf("Delete: %+v, want it not to be stopped", got)
		}
		if err == nil {
			return fmt.Errorf("no error yet")
		}
		if !strings.Contains(err.Error(), "exit code 3") {
			t.Errorf("Delete: %v, want exit code 3", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// What a bootstrap script exits with says whether it is run again.
func TestBootstrapFails(t *testing.T) {
	p := newPool(t, 1)
	c := p.provider()
	p.put("fails", "")
	again := p.request("again", p.config(map[string]any{"bootstrap": "[ ! -e " + quote(p.path("fails")) + " ] || exit 75"}))
	var err error
	if testproc.Poll(20*time.Second, func() error {
		if _, err = c.Create(t.Context(), again); err == nil {
			return fmt.Errorf("no error yet")
		}
		return nil
	}); provider.ClassOf(err) != provider.Unavailable {
		t.Errorf("Create: %v, want Unavailable", err)
	}
	if i, err := c.Get(t.Context(), provider.Ref{Token: again.Token}); err != nil || i.State != provider.Pending {
		t.Errorf("Get: %+v, %v, want Pending", i, err)
	}
	if err := os.Remove(p.path("fails")); err != nil {
		t.Fatal(err)
	}
	started(t, c, again)
	must(t, "Destroy", func() (provider.Progress, error) { return c.Delete(t.Context(), deletion(again, provider.Destroy)) })
	never := p.request("never", p.config(map[string]any{"bootstrap": "echo a-secret; exit 3"}))
	if err := testproc.Poll(20*time.Second, func() error {
		i, err := c.Create(t.Context(), never)
		if err == nil && (i.State != provider.Broken || strings.Contains(i.Message, "a-secret") || !strings.Contains(i.Message, "exit code 3")) {
			err = fmt.Errorf("got %+v, want Broken with the exit code", i)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	must(t, "Destroy", func() (provider.Progress, error) { return c.Delete(t.Context(), deletion(never, provider.Destroy)) })
}

// A script that was cut off, as by a reboot, is run again by whoever asks, with what it needs; Get is enough.
func TestBootstrapIsRunAgain(t *testing.T) {
	p := newPool(t, 1)
	c, r := p.provider(), p.request("m", p.config(nil))
	r.Join.Bootstrap = map[string][]byte{"token": []byte("the-join-secret"), "ca.crt": []byte("x\x00\n'y")}
	slow := p.inject("slow")
	i, err := c.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range p.session() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	p.put("boot.h0", "another-boot\n")
	slow()
	if err := testproc.Poll(20*time.Second, func() error {
		if got, err := c.Get(t.Context(), i.Ref()); err != nil || got.State != provider.Running {
			return fmt.Errorf("the machine is %+v, and the error %w", got, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := p.read("run.h0.join"); got != "ca.crt\ntoken\n" {
		t.Errorf("the script has had the files %q", got)
	}
	if got := p.read("run.h0.stdin"); !strings.Contains(got, `"token":"dGhlLWpvaW4tc2VjcmV0"`) || !strings.Contains(got, `"providerID":"`+i.ProviderID+`"`) {
		t.Errorf("standard input was %q", got)
	}
	p.secretsAreGone("the-join-secret", "dGhlLWpvaW4tc2VjcmV0")
}

// session are the processes of the step that runs on the first host.
func (p *pool) session() []int {
	var all []int
	pids, _ := filepath.Glob(filepath.Join(p.hosts[0].Directory, "steps", "*", "pid"))
	for _, name := range pids {
		text, err := os.ReadFile(name)
		var leader, sid int
		if _, scanErr := fmt.Sscan(string(text), &leader); err != nil || scanErr != nil {
			p.t.Fatalf("%q holds %q", name, text)
		}
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, s := range stats {
			var pid, x int
			var state string
			line, _ := os.ReadFile(s)
			_, _ = fmt.Sscan(string(line), &pid)
			_, rest, _ := strings.Cut(string(line), ") ")
			if n, _ := fmt.Sscan(rest, &state, &x, &x, &sid); n == 4 && sid == leader {
				all = append(all, pid)
			}
		}
	}
	if len(all) == 0 {
		p.t.Fatal("no step runs")
	}
	return all
}

// secretsAreGone looks for texts in all files of the hosts.
func (p *pool) secretsAreGone(texts ...string) {
	_ = filepath.WalkDir(p.disks, func(name string, _ os.DirEntry, _ error) error {
		data, err := os.ReadFile(name)
		for _, text := range texts {
			if err == nil && strings.Contains(string(data), text) {
				p.t.Errorf("%q holds the secret when the script has ended", name)
			}
		}
		return nil
	})
}

// Secrets are no arguments of any process: neither here nor on the host.
func TestSecretsAreNoArguments(t *testing.T) {
	p := newPool(t, 1)
	c, r := p.provider(), p.request("m", p.config(nil))
	r.Join.Bootstrap = map[string][]byte{"token": []byte("the-join-secret")}
	slow := p.inject("slow")
	if _, err := c.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"the-join-secret", "dGhlLWpvaW4tc2VjcmV0"} {
		if found := testproc.Naming(text); len(found) > 0 {
			t.Errorf("process %q has the secret among its arguments or in its environment", found[0])
		}
	}
	modes, err := filepath.Glob(filepath.Join(p.hosts[0].Directory, "steps", "*", "*"))
	if err != nil || len(modes) == 0 {
		t.Fatalf("there are no files of a step: %v", err)
	}
	for _, name := range append(modes, p.hosts[0].Directory) {
		if info, err := os.Stat(name); err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%q has mode %v, want none for others", name, info.Mode())
		}
	}
	slow()
	started(t, c, r)
}

// What is not seen is not said to be away: a host that does not answer may have it, if the ProviderID names it.
func TestUnansweredIsNotNotFound(t *testing.T) {
	p := newPool(t, 2)
	c, r := p.provider(), p.request("m", p.config(nil))
	i := started(t, c, r)
	other := map[string]string{"h0": "h1", "h1": "h0"}[hostOf(i.Ref())]
	for _, h := range p.hosts {
		if h.Name == other {
			defer p.inject(fmt.Sprintf("unavailable.%d", h.Port))()
		}
	}
	never := p.request("never", p.config(nil))
	ctx := context.WithoutCancel(t.Context())
	for name, c := range map[string]struct {
		call func() error
		want provider.Class
	}{
		"Get of what is there":           {func() error { _, err := c.Get(ctx, provider.Ref{Token: r.Token}); return err }, ""},
		"Create of what is there":        {func() error { _, err := c.Create(ctx, r); return err }, ""},
		"Get of what is not":             {func() error { _, err := c.Get(ctx, provider.Ref{Token: never.Token}); return err }, provider.Unavailable},
		"Get by ProviderID":              {func() error { _, err := c.Get(ctx, ref(hostOf(i.Ref()), never.Token)); return err }, provider.NotFound},
		"Get by ProviderID of that host": {func() error { _, err := c.Get(ctx, ref(other, never.Token)); return err }, provider.Unavailable},
		"Get by ProviderID of no host":   {func() error { _, err := c.Get(ctx, ref("h9", never.Token)); return err }, provider.Unavailable},
		"Delete of what is not":          {func() error { _, err := c.Delete(ctx, deletion(never, provider.Destroy)); return err }, provider.Unavailable},
		"Create":                         {func() error { _, err := c.Create(ctx, never); return err }, provider.Unavailable},
		"List":                           {func() error { _, err := c.List(ctx, provider.Scope{Cluster: "c"}); return err }, provider.Unavailable},
	} {
		if err := c.call(); provider.ClassOf(err) != c.want {
			t.Errorf("%s: %v, want class %q", name, err, c.want)
		}
	}
}

func ref(host, token string) provider.Ref {
	return provider.Ref{Token: token, ProviderID: providerID(host, token)}
}

// A host that has another name in the inventory than before is not taken for another host.
func TestRenamedHostIsRefused(t *testing.T) {
	p := newPool(t, 1)
	r := p.request("m", p.config(nil))
	started(t, p.provider(), r)
	s := p.settings()
	s.Hosts = []Host{p.hosts[0]}
	s.Hosts[0].Name = "renamed"
	p.put("boot.renamed", "x\n")
	c, err := s.core()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := typed(c).Get(t.Context(), provider.Ref{Token: r.Token}); provider.ClassOf(err) != provider.Internal || !strings.Contains(err.Error(), "keeps its name") {
		t.Errorf("Get: %v, want Internal that says what is wrong", err)
	}
}
