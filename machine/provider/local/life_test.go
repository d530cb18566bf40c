// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/local"
)

// pidOf reads the record.
func pidOf(t testing.TB, root string, r provider.CreateRequest) int {
	t.Helper()
	var record struct {
		Process struct{ PID int }
	}
	data, err := os.ReadFile(filepath.Join(dirOf(root, r), "instance.json"))
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil {
		t.Fatal(err)
	}
	return record.Process.PID
}

// eventually waits for a file of a machine to have a text.
func eventually(t testing.TB, root string, r provider.CreateRequest, name, want string) {
	t.Helper()
	err := testproc.Poll(within, func() error {
		data, err := readIfThere(filepath.Join(dirOf(root, r), name))
		if err == nil && !strings.Contains(string(data), want) {
			err = fmt.Errorf("file %q: got %q, want %q in it", name, data, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
		t.Fatalf("its process: %s", doing(pidOf(t, root, r)))
	}
}

// doing tells what a process waits for, which signals it has not taken yet, and what its children do.
func doing(pid int) string {
	var said []string
	read := func(name string) string {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(string(data))
	}
	for line := range strings.Lines(read("status")) {
		for _, field := range []string{"Name", "State", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"} {
			if strings.HasPrefix(line, field+":") {
				said = append(said, strings.Join(strings.Fields(line), " "))
			}
		}
	}
	said = append(said, "waits in "+read("wchan"))
	for child := range strings.FieldsSeq(read(fmt.Sprintf("task/%d/children", pid))) {
		if n, err := strconv.Atoi(child); err == nil {
			said = append(said, "child "+child+" ["+doing(n)+"]")
		}
	}
	return strings.Join(said, ", ")
}

// A process that was forked by somebody who was killed before it could say so is found, and not started again (R-MA-02).
func TestForkedAndNotRecorded(t *testing.T) {
	for _, namespaces := range []local.Namespaces{local.None, local.Auto} {
		root := newRoot(t)
		r := request(1, config(t, func(c *local.Config) { c.Namespaces = namespaces }))
		p := open(t, local.Options{Root: root})
		forked := -1
		for point := 0; forked < 0; point++ {
			if point > 20 {
				t.Fatal("no step at which the process is there and not recorded")
			}
			if !run(t, order{Root: root, Call: &machinetest.Call{Create: &r}, Point: point}) {
				t.Fatal("the child was not killed")
			}
			if len(census(t, root)) == 1 && pidOf(t, root, r) == 0 {
				forked = pidNaming(t, "BELAY_MACHINE="+r.Token)
			}
		}
		if i := get(t, p, r); i.State != provider.Pending {
			t.Errorf("before Create is made again: got %s, want Pending", i.State)
		}
		if i := create(t, p, r); i.State != provider.Running || pidOf(t, root, r) != forked {
			t.Errorf("got %s and process %d, want Running and %d", i.State, pidOf(t, root, r), forked)
		}
		wantProcesses(t, root, r, 1)
		remove(t, p, r, provider.Destroy)
		wantProcesses(t, root, r, 0)
	}
}

// A process that ends by itself is reaped, and its machine says how it ended; nothing starts it but a reboot.
func TestProcessEnds(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	r := request(1, config(t, shell("test -e data/data/again && exec sleep 1000000; touch data/data/again; echo last words; exit 7")))
	create(t, p, r)
	pid := pidOf(t, root, r)
	err := testproc.Poll(within, func() error {
		if i := get(t, p, r); i.State != provider.Broken || !strings.Contains(i.Message, "exit status 7") {
			return fmt.Errorf("got %s, %q, want Broken with exit status 7", i.State, i.Message)
		}
		_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("process %d was not waited for: %w", pid, errors.Join(err, errors.New("it is there")))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if i := create(t, p, r); i.State != provider.Broken {
		t.Errorf("Create: got %s, want it to start nothing", i.State)
	}
	out, err := p.Abilities().Console.Console(t.Context(), provider.Ref{Token: r.Token}, 6)
	if string(out) != "words\n" || err != nil {
		t.Errorf("Console: got %q, %v", out, err)
	}
	finish(t, func() (provider.Progress, error) {
		return p.Abilities().Power.Reboot(t.Context(), provider.Ref{Token: r.Token}, "b1")
	})
	if i := get(t, p, r); i.State != provider.Running || i.Message != "" {
		t.Errorf("after Reboot: got %s, %q", i.State, i.Message)
	}
	out, err = p.Abilities().Console.Console(t.Context(), provider.Ref{Token: r.Token}, 100)
	if string(out) != "last words\n" || err != nil {
		t.Errorf("Console after Reboot: got %q, %v, want what was printed before", out, err)
	}
}

// A program that can't be started is Broken. One that is not there is InvalidConfig, and has no directory.
func TestProgramCannotBeStarted(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	r := request(1, config(t, func(c *local.Config) {
		c.Command = []string{"files/run"}
		c.Files = []local.File{{Path: "run", Content: "#!/no/such/interpreter\n", Mode: "0755"}}
	}))
	if i := create(t, p, r); i.State != provider.Broken || i.Message == "" {
		t.Errorf("got %s, %q, want Broken and why", i.State, i.Message)
	}
	if i := get(t, p, r); i.State != provider.Broken {
		t.Errorf("Get: got %s, want Broken", i.State)
	}
	remove(t, p, r, provider.Destroy)
	none := request(2, config(t, func(c *local.Config) { c.Command = []string{"/no/such/program"} }))
	_, err := p.Create(t.Context(), none)
	wantClass(t, "Create without a program", err, provider.InvalidConfig)
	wantClass(t, "Validate without a program", p.Abilities().Validator.Validate(t.Context(), none.Desired), provider.InvalidConfig)
	if dirs, _ := filepath.Glob(filepath.Join(root, "machines", "*")); len(dirs) > 0 {
		t.Errorf("directories are left: %q", dirs)
	}
}

// A machine is told what it needs, and nothing else: no variable of its parent, and no secret but in a file that only it can read and that does not
// outlive it.
func TestWhatAMachineIsGiven(t *testing.T) {
	const secret = "s3cr3t-of-the-test"
	t.Setenv("PARENT_TOKEN", "the parent's own")
	root := newRoot(t)
	p := open(t, local.Options{Root: root, Zone: "lab/a"})
	r := request(1, config(t, func(c *local.Config) {
		shell(`env >data/data/env; cat "$BELAY_BOOTSTRAP_DIR/token" "$BELAY_SETTINGS" files/etc/a >data/data/seen; echo done >>data/data/seen; exec sleep 1000000`)(c)
		c.Env = map[string]string{"OWN": "value"}
		c.Files = []local.File{{Path: "etc/a", Content: "content of a\n", Mode: "0640"}}
	}))
	r.Join = provider.Join{Endpoint: "https://api:6443", Bootstrap: map[string][]byte{"token": []byte(secret)},
		Credentials: map[string][]byte{"key": []byte("credential")}}
	r.Desired.Node.Labels = map[string]string{"rack": "r7"}
	r.Digest = r.Desired.Digest()
	i := create(t, p, r)
	if want := "local:///lab/a/" + r.Token; i.ProviderID != want {
		t.Errorf("ProviderID: got %q, want %q", i.ProviderID, want)
	}
	eventually(t, root, r, "data/data/seen", "done")
	for _, want := range []string{secret, `"kubelet": "v1.36.3"`, `"rack": "r7"`, "content of a"} {
		eventually(t, root, r, "data/data/seen", want)
	}
	for _, want := range []string{"BELAY_ENDPOINT=https://api:6443\n", "BELAY_PROVIDER_ID=" + i.ProviderID + "\n", "OWN=value\n", "BELAY_MACHINE=" + r.Token} {
		eventually(t, root, r, "data/data/env", want)
	}
	env, err := os.ReadFile(filepath.Join(dirOf(root, r), "data/data/env"))
	if err != nil || bytes.Contains(env, []byte("PARENT_TOKEN")) || bytes.Contains(env, []byte(secret)) {
		t.Errorf("environment: %q, %v", env, err)
	}
	for name, mode := range map[string]fs.FileMode{"": 0o700, "bootstrap": 0o700, "bootstrap/token": 0o600, "files/etc/a": 0o640, "instance.json": 0o600} {
		if info, err := os.Stat(filepath.Join(dirOf(root, r), name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q: got mode %v, %v, want %v", name, info.Mode(), err, mode)
		}
	}
	if err := os.Remove(filepath.Join(dirOf(root, r), "data/data/seen")); err != nil {
		t.Fatal(err)
	}
	remove(t, p, r, provider.Retain)
	wantNowhere(t, root, secret, "credential")
}

// wantNowhere checks that no file of a root has a text.
func wantNowhere(t *testing.T, root string, texts ...string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		data, err := os.ReadFile(name)
		for _, text := range texts {
			if bytes.Contains(data, []byte(text)) || bytes.Contains(data, []byte(jsonBytes(t, text))) {
				t.Errorf("%q has %q", name, text)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}

// jsonBytes is how a text looks in JSON as bytes.
func jsonBytes(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(string(data), `"`)
}

// Where namespaces can be made, a machine is the first process of its own, has its own name, and what it mounts is not there for others.
func TestNamespaces(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	if err := p.Confined(); err != nil {
		t.Logf("no namespaces here, which TestConformanceInNamespaces checks: %v", err)
		return
	}
	r := request(1, config(t, func(c *local.Config) {
		shell(`mount -t tmpfs none data/data; echo "I am $$ on $(cat /proc/sys/kernel/hostname)"; sleep 1000000 & exec sleep 2000000`)(c)
		c.Namespaces = local.Required
		c.GraceSeconds = 1
	}))
	create(t, p, r)
	eventually(t, root, r, "console.log", "I am 1 on "+r.Token)
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(mounts, []byte(r.Token)) {
		t.Errorf("its mount is seen outside, or %v", err)
	}
	wantProcesses(t, root, r, 2)
	remove(t, p, r, provider.Destroy) // with the first one the kernel ends the other
	wantProcesses(t, root, r, 0)
}

// When it is closed it waits for nobody, and says so.
func TestClosed(t *testing.T) {
	root := newRoot(t)
	p, err := local.New(t.Context(), local.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	r := request(1, config(t, nil))
	create(t, p, r)
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err = p.Get(t.Context(), provider.Ref{Token: r.Token})
	wantClass(t, "Get", err, provider.Unavailable)
	wantProcesses(t, root, r, 1)
	other := open(t, local.Options{Root: root})
	if i := get(t, other, r); i.State != provider.Running {
		t.Errorf("got %s, want it to run on", i.State)
	}
	remove(t, other, r, provider.Destroy)
}
