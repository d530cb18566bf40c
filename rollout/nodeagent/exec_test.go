// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/compat"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/rollout/nodeagent"
)

// The test binary is its own hook: role says as what it runs.
const role = "BELAY_HOOK_ROLE"

// patience bounds each wait for a process; none takes nearly as long.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	r := os.Getenv(role)
	if r == "" {
		os.Exit(m.Run())
	}
	name, arg, _ := strings.Cut(r, " ")
	os.Exit(roles[name](arg))
}

// roles are what a hook can do.
var roles = map[string]func(arg string) int{
	"say": func(arg string) int { fmt.Print(arg); return 0 },
	"exit": func(arg string) int {
		code, said, _ := strings.Cut(arg, " ")
		fmt.Print(said)
		n, err := strconv.Atoi(code)
		if err != nil {
			return 99
		}
		return n
	},
	"env": func(arg string) int {
		text, err := json.Marshal(append(os.Environ(), os.Args[1:]...))
		if err != nil || os.WriteFile(arg, text, 0o600) != nil {
			return 99
		}
		return 0
	},
	"much": func(string) int {
		fmt.Fprint(os.Stderr, strings.Repeat("e", 200<<10))
		fmt.Print(strings.Repeat("x", 200<<10))
		return 0
	},
	"hang":  func(arg string) int { return family(arg, true) },
	"leave": func(arg string) int { return family(arg, false) },
	"linger": func(string) int {
		fmt.Println(os.Getpid())
		never := make(chan os.Signal, 1)
		signal.Notify(never, syscall.SIGUSR1)
		<-never // it has to be killed
		return 0
	},
}

// family starts a child in the same group, writes both process IDs, and stays or ends.
func family(file string, stay bool) int {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), role+"=linger")
	out, err := child.StdoutPipe()
	if err != nil || child.Start() != nil {
		return 99
	}
	pid := make([]byte, 16)
	n, _ := out.Read(pid)
	if os.WriteFile(file+".new", fmt.Appendf(nil, "%d %s", os.Getpid(), pid[:n]), 0o600) != nil || os.Rename(file+".new", file) != nil {
		return 99
	}
	if stay {
		_ = child.Wait()
	}
	return 0
}

// hooks is an updater all of whose commands have one role.
func hooks(t *testing.T, as string, with func(*nodeagent.Exec)) nodeagent.Updater {
	t.Helper()
	argv := []string{os.Args[0], "a b", "$HOME;*"}
	e := nodeagent.Exec{Observe: argv, Apply: argv, Verify: argv, Prepare: argv, Preflight: argv, Disruption: argv, Revert: argv, Env: []string{role + "=" + as}}
	if with != nil {
		with(&e)
	}
	u, err := e.NewUpdater()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

var attempt = nodeagent.Attempt{Key: "uid-1-7", Revision: v2, Revert: true}

// verbs call each hook.
var verbs = map[string]func(context.Context, nodeagent.Updater) error{
	"observe": func(ctx context.Context, u nodeagent.Updater) error { _, err := u.Observe(ctx); return err },
	"prepare": func(ctx context.Context, u nodeagent.Updater) error { return u.Prepare(ctx, v2) },
	"preflight": func(ctx context.Context, u nodeagent.Updater) error {
		return u.(nodeagent.Preflighter).Preflight(ctx, attempt)
	},
	"disruption": func(ctx context.Context, u nodeagent.Updater) error {
		_, err := u.(nodeagent.Disrupter).Disruption(ctx, v1, v2)
		return err
	},
	"apply":  func(ctx context.Context, u nodeagent.Updater) error { return u.Apply(ctx, attempt) },
	"verify": func(ctx context.Context, u nodeagent.Updater) error { _, err := u.Verify(ctx, attempt); return err },
	"revert": func(ctx context.Context, u nodeagent.Updater) error { return u.Revert(ctx, attempt) },
}

// R-RO-23: every hook gets its verb, its attempt and its revision in the environment, its arguments as they are, and nothing else of the
// agent's environment.
func TestHookEnvironment(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "abc")
	for verb, call := range verbs {
		t.Run(verb, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "env")
			_ = call(t.Context(), hooks(t, "env "+file, nil)) // observe and verify have no answer
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			key, name, digest, revert := attempt.Key, v2.Name, v2.Digest, "true"
			if verb == "observe" || verb == "prepare" || verb == "disruption" {
				key, revert = "", "false"
			}
			if verb == "observe" {
				name, digest = "", ""
			}
			want := []string{
				role + "=env " + file, "BELAY_VERB=" + verb, "BELAY_ATTEMPT=" + key, "BELAY_REVISION=" + name, "BELAY_DIGEST=" + digest,
				"BELAY_REVERT=" + revert,
			}
			if verb == "disruption" {
				want = append(want, "BELAY_CURRENT="+v1.String())
			}
			want = append(want, "a b", "$HOME;*")
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// The PATH is all that a hook gets of the agent's environment by itself.
func TestHookEnvironmentByDefault(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "abc")
	file := filepath.Join(t.TempDir(), "env")
	u := hooks(t, "", func(e *nodeagent.Exec) { e.Env, e.Apply = nil, []string{"sh", "-c", "env > " + file} })
	if err := u.Apply(t.Context(), attempt); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "PATH="+os.Getenv("PATH")) || strings.Contains(string(text), "SECRET_TOKEN") {
		t.Errorf("got environment %q, %v, want the PATH and none of the secrets", text, err)
	}
}

// R-RO-22, the node's side: a hook says how much a change takes from its node, and one that was not asked for says nothing, which stands for the
// worst.
func TestHookSaysWhatItDisrupts(t *testing.T) {
	u := hooks(t, `say {"disruption":"None"}`, nil)
	if d, err := u.(nodeagent.Disrupter).Disruption(t.Context(), v1, v2); err != nil || d != nodeagent.DisruptionNone {
		t.Errorf("got %q, %v, want %q", d, err, nodeagent.DisruptionNone)
	}
	u = hooks(t, "", func(e *nodeagent.Exec) { e.Disruption = nil })
	if d, err := u.(nodeagent.Disrupter).Disruption(t.Context(), v1, v2); err != nil || d != "" {
		t.Errorf("got %q, %v, want nothing: there is no hook for it", d, err)
	}
}

// Answers are strict: what is misspelt, left out or doubled is no verdict.
func TestHookAnswers(t *testing.T) {
	for _, c := range []struct {
		verb, out, want string
	}{
		{"verify", `{"verdict":"Pass"}`, ""},
		{"verify", `{"verdict":"Fail","reason":"Sick","message":"no"}`, ""},
		{"verify", `{"verdict":"NotYet"}` + "\n", ""},
		{"verify", `{"verdict":"pass"}`, `verdict is "pass"`},
		{"verify", `{}`, `verdict is ""`},
		{"verify", ``, "0 bytes"},
		{"verify", `{"verdict":"Pass","verdit":"Fail"}`, "verdit"},
		{"verify", `{"verdict":"Pass"}{"verdict":"Fail"}`, "more than one"},
		{"verify", `Pass`, "4 bytes"},
		{"observe", `{"current":{"name":"v1"},"bootID":"b","canRevert":true}`, ""},
		{"observe", `{"current":"v1"}`, "hook observe"},
		{"disruption", `{"disruption":"None"}`, ""},
		{"disruption", `{"disruption":"none"}`, `it is "none"`},
		{"disruption", `{}`, `it is ""`},
	} {
		t.Run(c.out, func(t *testing.T) {
			err := verbs[c.verb](t.Context(), hooks(t, "say "+c.out, nil))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got error %v, want none", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

// What is observed is what the hook says; a boot ID that it leaves out is the kernel's. Without a hook that goes back there is no way back.
func TestHookObserves(t *testing.T) {
	u := hooks(t, `say {"current":{"name":"v1","digest":"d"},"previous":{"name":"v0"},"canRevert":true}`, nil)
	o, err := u.Observe(t.Context())
	boot, bootErr := nodeagent.BootID()
	if err != nil || bootErr != nil || o.BootID != boot || boot == "" || o.Current.Digest != "d" || o.Previous.Name != "v0" || !o.CanRevert {
		t.Errorf("got %+v, %v, want what the hook says, in boot %q (%v)", o, err, boot, bootErr)
	}
	u = hooks(t, `say {"current":{"name":"v1"},"canRevert":true}`, func(e *nodeagent.Exec) { e.Revert = nil })
	if o, err := u.Observe(t.Context()); err != nil || o.CanRevert {
		t.Errorf("got %+v, %v, want no way back: there is no hook for it", o, err)
	}
	if err := u.Revert(t.Context(), attempt); !errors.Is(err, nodeagent.ErrIrreversible) {
		t.Errorf("Revert: got error %v, want ErrIrreversible", err)
	}
}

// R-RO-23: what an exit code means, for each verb, and that what the hook says of it is data. R-RO-21: no way back has a code of its own.
func TestHookExitCodes(t *testing.T) {
	const said = ` {"reason":"Busy","message":"a backup runs"}`
	declined := func(err error) bool {
		d, ok := compat.AsType[*nodeagent.DeclinedError](err)
		return ok && d.Reason == "Busy" && d.Message == "a backup runs"
	}
	rebooting := func(err error) bool { return errors.Is(err, nodeagent.ErrRebooting) }
	irreversible := func(err error) bool { return errors.Is(err, nodeagent.ErrIrreversible) }
	failed := func(err error) bool {
		h, ok := compat.AsType[*nodeagent.HookError](err)
		return ok && h.Reason == "Busy" && !declined(err) && !rebooting(err) && !irreversible(err)
	}
	for _, c := range []struct {
		verb string
		code int
		want func(error) bool
	}{
		{"preflight", 10, declined}, {"preflight", 11, failed}, {"preflight", 1, failed}, {"prepare", 10, failed}, {"observe", 10, failed}, {"verify", 11, failed},
		{"apply", 10, failed}, {"apply", 11, rebooting}, {"apply", 12, failed}, {"apply", 1, failed},
		{"revert", 10, failed}, {"revert", 11, rebooting}, {"revert", 12, irreversible}, {"revert", 2, failed},
	} {
		t.Run(fmt.Sprint(c.verb, c.code), func(t *testing.T) {
			if err := verbs[c.verb](t.Context(), hooks(t, fmt.Sprintf("exit %d%s", c.code, said), nil)); !c.want(err) {
				t.Errorf("got error %v (%T)", err, err)
			}
		})
	}
}

// R-RO-23: a hook that takes too long is killed with all of its process group, and the error says so.
func TestHookIsKilledAtItsDeadline(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- hooks(t, "hang "+file, nil).Apply(ctx, attempt) }()
	pids := pidsIn(t, file)
	cancel() // as a deadline does
	var err error
	select {
	case err = <-done:
	case <-time.After(patience):
		t.Error("the hook goes on")
	}
	if h, ok := compat.AsType[*nodeagent.HookError](err); !ok || h.Code != -1 || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got error %v, want a HookError of a hook that was killed", err)
	}
	wantEnded(t, pids)
}

// A deadline that is over before the hook starts starts none.
func TestHookAfterItsDeadline(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "env")
	if err := hooks(t, "env "+file, nil).Apply(ctx, attempt); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the hook has run")
	}
}

// What a hook leaves behind in its group ends with it: a retry must not meet the one before.
func TestHookLeavesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	if err := hooks(t, "leave "+file, nil).Apply(t.Context(), attempt); err != nil {
		t.Errorf("Apply: got error %v, want none", err)
	}
	wantEnded(t, pidsIn(t, file))
}

func pidsIn(t *testing.T, file string) []int {
	t.Helper()
	var text []byte
	if err := testproc.Poll(patience, func() (err error) { text, err = os.ReadFile(file); return err }); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, f := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 2 {
		t.Fatalf("got %q, want two process IDs", text)
	}
	return pids
}

func wantEnded(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if err := testproc.Poll(patience, func() error { return testproc.Ended(pid) }); err != nil {
			t.Errorf("%v, want it killed", err)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// Output is bounded, a hook that writes more is not held up, and its standard error goes where it was told to and nowhere else.
func TestHookOutputIsBounded(t *testing.T) {
	var stderr bytes.Buffer
	u := hooks(t, "much", func(e *nodeagent.Exec) { e.Stderr = &stderr })
	err := u.Prepare(t.Context(), v2)
	if err == nil || !strings.Contains(err.Error(), "65536") || len(err.Error()) > 200 {
		t.Errorf("got error %.300v, want one that names the limit of 65536 bytes, and nothing of what was written", err)
	}
	if stderr.Len() != 200<<10 {
		t.Errorf("got %d bytes of standard error, want all %d", stderr.Len(), 200<<10)
	}
}

// What a hook says for people is cut and made printable.
func TestHookMessageIsBounded(t *testing.T) {
	text, err := json.Marshal(map[string]string{"reason": strings.Repeat("R", 500), "message": "a\x1b[31m" + strings.Repeat("é", 5000)})
	if err != nil {
		t.Fatal(err)
	}
	err = hooks(t, "exit 1 "+string(text), nil).Apply(t.Context(), attempt)
	h, ok := compat.AsType[*nodeagent.HookError](err)
	if !ok || len(h.Reason) != 64 || len(h.Message) > 1024 || !strings.HasPrefix(h.Message, "a [31mé") || strings.Contains(h.Message, "\uFFFD") {
		t.Errorf("got %v, want a reason of 64 bytes and a message of whole runes up to 1024", err)
	}
}

// A program that is not there is an error that names the verb, and what is required is asked for.
func TestHookIsMissing(t *testing.T) {
	u := hooks(t, "", func(e *nodeagent.Exec) { e.Apply = []string{"/no/such/program"} })
	if err := u.Apply(t.Context(), attempt); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "hook apply") {
		t.Errorf("got error %v, want fs.ErrNotExist that names the hook", err)
	}
	for name, e := range map[string]nodeagent.Exec{
		"Observe": {Apply: []string{"a"}, Verify: []string{"v"}}, "Apply": {Observe: []string{"o"}, Verify: []string{"v"}},
		"Verify": {Observe: []string{"o"}, Apply: []string{"a"}}, "Revert": {Observe: []string{"o"}, Apply: []string{"a"}, Verify: []string{"v"}, Revert: []string{""}},
	} {
		if _, err := e.NewUpdater(); err == nil || !strings.Contains(err.Error(), "Exec."+name+" ") {
			t.Errorf("got error %v, want one that names Exec.%s", err, name)
		}
	}
}
