// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/local"
)

// notDone checks that a Delete says that the machine may still run, and why.
func notDone(t *testing.T, p provider.Provider, r provider.CreateRequest, why string) {
	t.Helper()
	progress, err := p.Delete(t.Context(), deletion(r, provider.Destroy))
	if err != nil || progress.Done || progress.Stopped || !strings.Contains(progress.Message, why) {
		t.Errorf("Delete: got %+v, %v, want neither Done nor Stopped, and %q", progress, err, why)
	}
	if i := get(t, p, r); i.State != provider.Stopping {
		t.Errorf("Get: got %s, want Stopping", i.State)
	}
}

// A process that can't be killed keeps its machine from being done, so that its Node stays (R-MA-02).
func TestKillIsRefused(t *testing.T) {
	root := newRoot(t)
	var now atomic.Int64
	p := open(t, local.Options{Root: root, Now: func() time.Time { return time.Unix(1e9+now.Load(), 0) }})
	r := request(1, config(t, nil))
	create(t, p, r)
	var sent atomic.Int64
	p.Refuse(func(unix.Signal) error { sent.Add(1); return unix.EPERM })
	notDone(t, p, r, "operation not permitted")
	notDone(t, p, r, "killed in 2s")
	if sent.Load() != 1 {
		t.Errorf("in its grace it was asked %d times to end, want once", sent.Load())
	}
	now.Add(3)
	notDone(t, p, r, "operation not permitted")
	if sent.Load() != 2 {
		t.Errorf("after its grace got %d signals, want 2", sent.Load())
	}
	p.Refuse(func(unix.Signal) error { return nil })
	remove(t, p, r, provider.Destroy)
}

// A process of another user can't be killed by one who may not, and is not taken for gone.
func TestProcessOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("only root can be two users; TestKillIsRefused has the same refusal")
		return
	}
	root := newRoot(t)
	r := request(1, config(t, nil))
	create(t, open(t, local.Options{Root: root}), r)
	program := filepath.Join(t.TempDir(), "belay.test")
	for _, dir := range []string{filepath.Dir(program), filepath.Dir(filepath.Dir(program)), filepath.Dir(root)} {
		if err := os.Chmod(dir, 0o755); err != nil { // the other user has to get there
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("cp", os.Args[0], program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("chown", "-R", "65534", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d := deletion(r, provider.Destroy)
	cmd := child(t, order{Root: root, Delete: &d})
	cmd.Path = program
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	var progress provider.Progress
	if err == nil {
		err = json.Unmarshal(out, &progress)
	}
	if err != nil || progress.Done || progress.Stopped || !strings.Contains(progress.Message, "operation not permitted") {
		t.Errorf("got %+v, %v (%s), want neither Done nor Stopped, and why", progress, err, out)
	}
	wantProcesses(t, root, r, 1)
	remove(t, open(t, local.Options{Root: root}), r, provider.Destroy)
}

// A process that has left its session and its mark behind holds the lock, and is not taken for gone.
func TestProcessThatHides(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	r := request(1, config(t, shell(`setsid env -i sleep 1234321 & echo $! >data/data/pid; exit 0`)))
	create(t, p, r)
	eventually(t, root, r, "data/data/pid", "\n")
	hidden := pidNaming(t, "sleep\x001234321")
	t.Cleanup(func() { _ = syscall.Kill(hidden, syscall.SIGKILL) })
	wantProcesses(t, root, r, 0)
	notDone(t, p, r, "holds the lock")
	_, err := p.Abilities().Power.Reboot(t.Context(), provider.Ref{Token: r.Token}, "b1")
	wantClass(t, "Reboot of what is deleted", err, provider.Conflict)
	if err := syscall.Kill(hidden, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	remove(t, p, r, provider.Destroy)
}

// A start that is made again is not made beside a process that can't be found.
func TestNoStartBesideTheUnseen(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	r := request(1, config(t, nil))
	create(t, p, r)
	ref := provider.Ref{Token: r.Token}
	finish(t, func() (provider.Progress, error) { return p.Abilities().Power.Stop(t.Context(), ref) })
	lock, err := os.OpenFile(filepath.Join(dirOf(root, r), "alive"), os.O_RDWR, 0)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	progress, err := p.Abilities().Power.Reboot(t.Context(), ref, "b1")
	if err != nil || progress.Done {
		t.Errorf("Reboot: got %+v, %v, want it not to be done", progress, err)
	}
	wantProcesses(t, root, r, 0)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	finish(t, func() (provider.Progress, error) { return p.Abilities().Power.Reboot(t.Context(), ref, "b1") })
	wantProcesses(t, root, r, 1)
	remove(t, p, r, provider.Destroy)

	late := request(2, config(t, nil))
	if !run(t, order{Root: root, Call: &machinetest.Call{Create: &late}, Point: 1}) { // it was going to be started
		t.Fatal("the child was not killed")
	}
	if lock, err = os.OpenFile(filepath.Join(dirOf(root, late), "alive"), os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Create(t.Context(), late)
	wantClass(t, "Create", err, provider.Unavailable)
	wantProcesses(t, root, late, 0)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	create(t, p, late)
	wantProcesses(t, root, late, 1)
	remove(t, p, late, provider.Destroy)
}

// All processes of a machine are asked to end; those that don't are killed after the grace, also when they have left the session.
func TestWholeMachineEnds(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	r := request(1, config(t, func(c *local.Config) {
		shell(`trap 'echo bye' INT; setsid sh -c 'trap "" INT TERM; while :; do sleep 1; done' & echo up; while :; do sleep 1; done`)(c)
		c.StopSignal, c.GraceSeconds = "SIGINT", 1
	}))
	create(t, p, r)
	eventually(t, root, r, "console.log", "up")
	remove(t, p, r, provider.Retain)
	wantProcesses(t, root, r, 0)
	eventually(t, root, r, "console.log", "bye")
}

// What has the PID of a machine's process by chance is neither taken for it nor killed.
func TestPIDOfAnother(t *testing.T) {
	bystander := exec.CommandContext(t.Context(), "sleep", "1000000")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bystander.Wait() })
	for name, change := range map[string]func(p map[string]any){
		"start": func(p map[string]any) { p["start"] = 17 },
		"boot":  func(p map[string]any) { p["boot"], p["start"] = "another", startOf(t, bystander.Process.Pid) },
	} {
		root := newRoot(t)
		p := open(t, local.Options{Root: root})
		r := request(1, config(t, nil))
		create(t, p, r)
		killAll(t, root)
		edit(t, filepath.Join(dirOf(root, r), "instance.json"), func(m map[string]any) {
			process := m["process"].(map[string]any)
			process["pid"] = bystander.Process.Pid
			change(process)
		})
		if i := get(t, p, r); i.State != provider.Broken {
			t.Errorf("other %s: got %s, want Broken", name, i.State)
		}
		remove(t, p, r, provider.Destroy)
		if state := testproc.State(bystander.Process.Pid); state == "" {
			t.Fatalf("other %s: the process with that PID was killed", name)
		}
	}
}

func startOf(t *testing.T, pid int) uint64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, _, start, err := local.ParseStat(data)
	if err != nil {
		t.Fatal(err)
	}
	return start
}

// edit changes a file of JSON.
func edit(t *testing.T, name string, change func(map[string]any)) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	change(m)
	if data, err = json.Marshal(m); err == nil {
		err = os.WriteFile(name, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
