// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/local"
)

// outside makes a directory with a file that no deletion may reach.
func outside(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "precious")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

func wantKept(t *testing.T, file string) {
	t.Helper()
	if data, err := os.ReadFile(file); err != nil || string(data) != "kept" {
		t.Errorf("%q: got %q, %v, want it untouched", file, data, err)
	}
}

// Destroy removes links and not what they lead to. Data that is a link is not removed at all.
func TestDestroyFollowsNoLink(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	dir, file := outside(t)
	r := request(1, config(t, nil))
	create(t, p, r)
	for _, name := range []string{"data/data/link", "files/link"} {
		if err := os.Symlink(dir, filepath.Join(dirOf(root, r), name)); err != nil {
			t.Fatal(err)
		}
	}
	remove(t, p, r, provider.Destroy)
	wantKept(t, file)

	moved := request(2, config(t, nil))
	create(t, p, moved)
	remove(t, p, moved, provider.Retain)
	data := filepath.Join(dirOf(root, moved), "data")
	if err := errors.Join(os.RemoveAll(data), os.Symlink(dir, data)); err != nil {
		t.Fatal(err)
	}
	progress, err := p.Delete(t.Context(), deletion(moved, provider.Destroy))
	if err != nil || progress.Done || !progress.Stopped || !strings.Contains(progress.Message, "by hand") {
		t.Errorf("Delete of data that is a link: got %+v, %v", progress, err)
	}
	wantKept(t, file)
	if err := os.Remove(data); err != nil {
		t.Fatal(err)
	}
	remove(t, p, moved, provider.Destroy)
}

// A machine is not reached through a link, and what is beside it is left alone.
func TestMachineIsNoLink(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	r, other := request(1, config(t, nil)), request(2, config(t, nil))
	create(t, p, r)
	if err := os.Symlink(r.Token, dirOf(root, other)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Delete(t.Context(), deletion(other, provider.Destroy)); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("Delete: got %v, want an error that speaks of a link", err)
	}
	if _, err := p.Get(t.Context(), provider.Ref{Token: other.Token}); provider.ClassOf(err) == provider.NotFound {
		t.Errorf("Get: got %v, want it not to be NotFound", err)
	}
	wantProcesses(t, root, r, 1)
	remove(t, p, r, provider.Destroy)
}

// What is mounted in the directory of a machine is not emptied.
func TestDestroyLeavesMounts(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	dir, file := outside(t)
	r := request(1, config(t, nil))
	create(t, p, r)
	at := filepath.Join(dirOf(root, r), "data/data")
	if err := syscall.Mount(dir, at, "", syscall.MS_BIND, ""); err != nil {
		t.Logf("nothing can be mounted here, and FuzzMounts shows that mounts are found: %v", err)
		remove(t, p, r, provider.Destroy)
		return
	}
	t.Cleanup(func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) })
	var progress provider.Progress
	err := testproc.Poll(within, func() (err error) {
		if progress, err = p.Delete(t.Context(), deletion(r, provider.Destroy)); err == nil && !progress.Stopped {
			err = errors.New("it has not stopped")
		}
		return err
	})
	if err != nil || progress.Done || !strings.Contains(progress.Message, "mounted") {
		t.Errorf("got %+v, %v, want it not to be done for what is mounted", progress, err)
	}
	wantKept(t, file)
	if err := syscall.Unmount(at, 0); err != nil {
		t.Fatal(err)
	}
	remove(t, p, r, provider.Destroy)
	wantKept(t, file)
}

// What can't be read is not taken for gone.
func TestRecordIsBroken(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	r := request(1, config(t, nil))
	create(t, p, r)
	name := filepath.Join(dirOf(root, r), "instance.json")
	whole, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, whole[:len(whole)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Get(t.Context(), provider.Ref{Token: r.Token})
	wantClass(t, "Get", err, provider.Internal)
	_, err = p.List(t.Context(), provider.Scope{Cluster: cluster})
	wantClass(t, "List", err, provider.Internal)
	_, err = p.Create(t.Context(), r)
	wantClass(t, "Create", err, provider.Internal)
	progress, err := p.Delete(t.Context(), deletion(r, provider.Destroy))
	if wantClass(t, "Delete", err, provider.Internal); progress.Done || progress.Stopped {
		t.Errorf("Delete: got %+v", progress)
	}
	wantProcesses(t, root, r, 1)
	if err := os.WriteFile(name, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	remove(t, p, r, provider.Destroy)
}

// A root that is empty while machines of it run is one whose disk is not mounted. Two names of one root are one root.
func TestRootIsNotMounted(t *testing.T) {
	root := newRoot(t)
	r := request(1, config(t, nil))
	create(t, open(t, local.Options{Root: root}), r)
	away := root + " unmounted"
	if err := os.Rename(root, away); err != nil {
		t.Fatal(err)
	}
	if p, err := local.New(t.Context(), local.Options{Root: root}); err == nil || !strings.Contains(err.Error(), "mounted") {
		t.Errorf("got %v, %v, want an error that asks for the disk", p, err)
	}
	if err := errors.Join(os.RemoveAll(root), os.Rename(away, root), os.Symlink(root, root+" link")); err != nil {
		t.Fatal(err)
	}
	p := open(t, local.Options{Root: root + " link"})
	if i := create(t, p, r); i.State != provider.Running {
		t.Errorf("got %s", i.State)
	}
	wantProcesses(t, root, r, 1)
	remove(t, p, r, provider.Destroy)
}

// Options that can't be are refused.
func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []local.Options{{}, {Root: newRoot(t), Zone: "a b"}, {Root: newRoot(t), Zone: "/a"}, {Root: newRoot(t), ConsoleLimit: -1},
		{Root: filepath.Join(os.Args[0], "below a file")}} {
		if p, err := local.New(t.Context(), o); err == nil {
			t.Errorf("%+v: got %v, want an error", o, p)
		}
	}
}

// A console is cut when somebody looks, and its end is kept.
func TestConsoleIsCut(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root, ConsoleLimit: 1000})
	r := request(1, config(t, shell("seq 1 2000; echo up; while :; do sleep 0.1; test -e data/data/more && echo and more && exec sleep 1000000; done")))
	create(t, p, r)
	eventually(t, root, r, "console.log", "2000\nup\n")
	get(t, p, r)
	if info, err := os.Stat(filepath.Join(dirOf(root, r), "console.log")); err != nil || info.Size() > 1000 {
		t.Errorf("got %v bytes, %v, want at most 1000", info.Size(), err)
	}
	if err := os.WriteFile(filepath.Join(dirOf(root, r), "data/data/more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, root, r, "console.log", "and more\n")
	out, err := p.Abilities().Console.Console(t.Context(), provider.Ref{Token: r.Token}, 22)
	if want := "1999\n2000\nup\nand more\n"; err != nil || want[len(want)-22:] != string(out) {
		t.Errorf("got %q, %v, want the end of %q", out, err, want)
	}
	remove(t, p, r, provider.Destroy)
}

// An update without a restart writes files, removes those that are no more, and tells the process.
func TestReload(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	with := func(files ...local.File) provider.CreateRequest {
		return request(1, config(t, func(c *local.Config) {
			shell("trap 'cat files/etc/*; grep kubelet machine.json; echo told' USR1; echo up; while :; do sleep 0.1; done")(c)
			c.ReloadSignal, c.Files = "SIGUSR1", files // SIGHUP is ignored by what nohup has started, and a shell can't change that
		}))
	}
	r := with(local.File{Path: "etc/a", Content: "old a\n"}, local.File{Path: "etc/b", Content: "old b\n"})
	create(t, p, r)
	eventually(t, root, r, "console.log", "up")
	pid := pidOf(t, root, r)
	next := with(local.File{Path: "etc/a", Content: "new a\n"}, local.File{Path: "etc/c", Content: "new c\n"})
	next.Desired.Versions.Kubelet = "v1.36.4"
	u := provider.UpdateRequest{Ref: provider.Ref{Token: r.Token}, Cluster: cluster, Digest: next.Desired.Digest(), Desired: next.Desired}
	plan, err := p.Abilities().Planner.Plan(t.Context(), u)
	if err != nil || plan.Method != provider.InPlace || plan.Disrupts {
		t.Errorf("Plan: got %+v, %v, want it to be in place and to disturb nobody", plan, err)
	}
	finish(t, func() (provider.Progress, error) { return p.Abilities().Updater.Update(t.Context(), u) })
	eventually(t, root, r, "console.log", "new a\nnew c\n")
	eventually(t, root, r, "console.log", `"kubelet": "v1.36.4"`)
	if _, err := os.Stat(filepath.Join(dirOf(root, r), "files/etc/b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("file that is no more: %v", err)
	}
	if i := get(t, p, r); i.Digest != u.Digest || pidOf(t, root, r) != pid {
		t.Errorf("got digest %.12q and process %d, want %.12q and %d", i.Digest, pidOf(t, root, r), u.Digest, pid)
	}
	remove(t, p, r, provider.Destroy)
}

// New secrets take the place of all that is among the old ones, also while the program writes there, as one does that has just been started.
func TestSecretsWhileTheProgramWrites(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	r := request(1, config(t, func(c *local.Config) {
		shell(`mkdir "$BELAY_BOOTSTRAP_DIR/dir"; echo up
			for w in a b c d; do (exec 2>/dev/null; while :; do for i in 0 1 2 3 4 5 6 7 8 9; do echo x >"$BELAY_BOOTSTRAP_DIR/$w$i"; done; done) & done; wait`)(c)
		c.ReloadSignal = "SIGWINCH"
	}))
	r.Join.Bootstrap = map[string][]byte{"old": []byte("a"), "token": []byte("0")}
	create(t, p, r)
	eventually(t, root, r, "console.log", "up")
	for i := range 20 {
		next := r.Desired
		next.Versions.Kubelet = fmt.Sprintf("v1.36.%d", i)
		u := provider.UpdateRequest{
			Ref: provider.Ref{Token: r.Token}, Cluster: cluster, Digest: next.Digest(), Desired: next,
			Join: provider.Join{Bootstrap: map[string][]byte{"token": fmt.Append(nil, i+1)}},
		}
		if done, err := p.Abilities().Updater.Update(t.Context(), u); err != nil || !done.Done {
			t.Fatalf("update %d: got %+v, %v, want it to be done", i, done, err)
		}
	}
	dir := filepath.Join(dirOf(root, r), "bootstrap")
	if token, err := os.ReadFile(filepath.Join(dir, "token")); err != nil || string(token) != "20" {
		t.Errorf("the token is %q, %v, want the last one", token, err)
	}
	for _, name := range []string{"old", "dir"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q of before is still among the secrets: %v", name, err)
		}
	}
	remove(t, p, r, provider.Destroy)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the secrets are still there: %v", err)
	}
}

// What is in the place of the secrets and is no directory makes way for them.
func TestSecretsInThePlaceOfAFile(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	r := request(1, config(t, func(c *local.Config) {
		shell(`rm -r "$BELAY_BOOTSTRAP_DIR"; ln -s data "$BELAY_BOOTSTRAP_DIR"; echo x >data/kept; echo up; exec sleep 1000000`)(c)
		c.ReloadSignal = "SIGWINCH"
	}))
	r.Join.Bootstrap = map[string][]byte{"token": []byte("0")}
	create(t, p, r)
	eventually(t, root, r, "console.log", "up")
	next := r.Desired
	next.Versions.Kubelet = "v1.36.9"
	u := provider.UpdateRequest{
		Ref: provider.Ref{Token: r.Token}, Cluster: cluster, Digest: next.Digest(), Desired: next,
		Join: provider.Join{Bootstrap: map[string][]byte{"token": []byte("1")}},
	}
	finish(t, func() (provider.Progress, error) { return p.Abilities().Updater.Update(t.Context(), u) })
	for name, want := range map[string]string{"bootstrap/token": "1", "data/kept": "x\n"} {
		if got, err := os.ReadFile(filepath.Join(dirOf(root, r), name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	remove(t, p, r, provider.Destroy)
}

// Who keeps the token can get another owner while the machine runs. A token that was retained is not started by that.
func TestAdoptWithTheSameToken(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	r := request(1, config(t, nil))
	create(t, p, r)
	pid := pidOf(t, root, r)
	a := provider.AdoptRequest{From: provider.Ref{Token: r.Token}, As: r}
	a.As.Owner.Name, a.As.Owner.UID = "moved", "uid-after-a-restore"
	i, err := p.Abilities().Adopter.Adopt(t.Context(), a)
	if err != nil || i.Owner != a.As.Owner || i.State != provider.Running || pidOf(t, root, r) != pid {
		t.Errorf("got %+v, %v", i, err)
	}
	if i := get(t, p, r); i.Owner != a.As.Owner {
		t.Errorf("Get: got owner %+v", i.Owner)
	}
	other := a
	other.As.Owner.Cluster = "c2"
	_, err = p.Abilities().Adopter.Adopt(t.Context(), other)
	wantClass(t, "Adopt by another cluster", err, provider.NotFound)
	remove(t, p, r, provider.Retain)
	_, err = p.Abilities().Adopter.Adopt(t.Context(), a)
	wantClass(t, "Adopt of what is retained, with its own token", err, provider.Conflict)
	wantProcesses(t, root, r, 0)
	remove(t, p, r, provider.Destroy)
}

// A Delete that comes before the Create that it is for keeps that from making anything.
func TestDeleteBeforeCreate(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	r := request(1, config(t, nil))
	if progress := remove(t, p, r, provider.Retain); !progress.Done || !progress.Stopped {
		t.Errorf("Delete: got %+v", progress)
	}
	_, err := p.Create(t.Context(), r)
	wantClass(t, "Create", err, provider.Conflict)
	wantProcesses(t, root, r, 0)
	if dirs, _ := filepath.Glob(filepath.Join(root, "machines", "*")); len(dirs) > 0 {
		t.Error(fmt.Errorf("directories are left: %q", dirs))
	}
}

// Of many Deletes at a time before there was a machine each one succeeds, and the token is used up.
func TestDeletesBeforeCreate(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	for n := range 20 {
		r, errs := request(n, config(t, nil)), make(chan error)
		const many = 8
		for range many {
			go func() {
				_, err := p.Delete(t.Context(), deletion(r, provider.Retain))
				errs <- err
			}()
		}
		for range many {
			if err := <-errs; err != nil {
				t.Errorf("Delete: %v", err)
			}
		}
		_, err := p.Create(t.Context(), r)
		wantClass(t, "Create", err, provider.Conflict)
	}
}
