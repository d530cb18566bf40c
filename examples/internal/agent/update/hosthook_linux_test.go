// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/process"
	"github.com/belayproject/belay/internal/systemdenv"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/internal/tier"
)

// nsenter stands for the host's namespaces, with the systemd of the test.
const nsenter = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\n" +
	"case $1 in\nsystemctl) shift; exec systemctl --user \"$@\" ;;\nsystemd-run) shift; exec systemd-run --user --property=DefaultDependencies=no \"$@\" ;;\n" +
	"esac\nexec \"$@\"\n"

// hostProgram is the program of a node. What it does is in the name of the revision.
const hostProgram = `#!/bin/sh
echo "$BELAY_VERB $BELAY_ATTEMPT $BELAY_REVISION $BELAY_DIGEST $BELAY_REVERT" >>DIR/calls
case $BELAY_REVISION in
reboots) echo '{"reason": "Boots"}'; exit 11 ;;
hangs) while [ ! -e DIR/go ]; do sleep 0.1; done ;;
ends) kill -TERM $$ ;;
esac
cat /proc/self/cgroup
`

// A hostHook is the hook of the manifests, with a directory in place of the host's.
type hostHook struct {
	*testing.T
	dir, script string
	short       string // the same with three seconds for what changes the node
}

func newHostHook(t *testing.T) *hostHook {
	t.Helper()
	const hooks = "/etc/belay-agent/hooks"
	h := &hostHook{T: t, dir: t.TempDir()}
	text := read(t, "../../../manifests/agent/hook.sh")
	if strings.Count(text, "program="+hooks) != 1 {
		t.Fatalf("the hook does not run what is in %s", hooks)
	}
	h.script = h.write("hook.sh", strings.Replace(text, "program="+hooks, "program="+h.dir, 1))
	h.short = h.write("short.sh", strings.NewReplacer("program="+hooks, "program="+h.dir, "+ 1620", "+ 3").Replace(text))
	h.write("nsenter", nsenter)
	for _, verb := range []string{"observe", "prepare", "apply", "revert"} {
		h.write(verb, strings.ReplaceAll(hostProgram, "DIR", h.dir))
	}
	return h
}

func (h *hostHook) write(name, text string) (path string) {
	h.Helper()
	path = filepath.Join(h.dir, name)
	testproc.WriteProgram(h, path, text)
	return path
}

// start calls the hook as package nodeagent does, in a process group of its own.
func (h *hostHook) start(verb, attempt, revision string) (*process.Group, *bytes.Buffer) {
	h.Helper()
	cmd, out := exec.CommandContext(h.Context(), h.script), &bytes.Buffer{}
	cmd.Env = append(os.Environ(), "PATH="+h.dir+":"+os.Getenv("PATH"),
		"BELAY_VERB="+verb, "BELAY_ATTEMPT="+attempt, "BELAY_REVISION="+revision, "BELAY_DIGEST=sha256:1", "BELAY_REVERT=false")
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	group, err := process.Start(cmd)
	if err != nil {
		h.Fatal(err)
	}
	return group, out
}

// call has the hook end by itself.
func (h *hostHook) call(verb, attempt, revision string) (out string, code int) {
	h.Helper()
	hook, text := h.start(verb, attempt, revision)
	<-hook.Done()
	var exit *exec.ExitError
	if err := hook.Err(); err != nil && !errors.As(err, &exit) {
		h.Fatal(err)
	}
	return text.String(), hook.State().ExitCode()
}

// called waits until the program was called so often, of which the last is line.
func (h *hostHook) called(n int, line string) {
	h.Helper()
	systemdenv.Eventually(h.T, "the program is called", func() error {
		text, err := os.ReadFile(filepath.Join(h.dir, "calls"))
		calls := strings.Split(strings.TrimSpace(string(text)), "\n")
		if err != nil || len(calls) != n || calls[n-1] != line {
			return fmt.Errorf("calls are %q, %w, want %d, the last of them %q", calls, err, n, line)
		}
		return nil
	})
}

// kill ends a hook as the end of its pod does, and the program goes on.
func (h *hostHook) kill(hook *process.Group, unit string) {
	h.Helper()
	hook.Signal(os.Kill)
	<-hook.Done()
	state, err := exec.CommandContext(h.Context(), "systemctl", "--user", "show", "--property=ActiveState", "--value", unit).Output()
	if got := strings.TrimSpace(string(state)); err != nil || got != "activating" {
		h.Errorf("without its hook %s is %q (%v), want it to go on", unit, got, err)
	}
}

// endingNsenter stands for a host whose unit, of the attempt in DIR/of, ends just before the call of systemctl that DIR/left counts down to.
const endingNsenter = `#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
case $1 in
test) exit 0 ;;
systemctl) left=$(($(cat DIR/left) - 1)); echo $left >DIR/left ;;
systemd-run) while [ "$1" != -- ]; do shift; done; shift; BELAY_REVISION=v1 BELAY_VERB=apply exec "$@" ;;
esac
case "$2 $3 $left" in
"stop "*" 0" | "stop "*" -"*) echo "Unit not loaded." >&2; exit 5 ;;
"stop "*) echo 0 >DIR/left ;;
"show --property=ActiveState 0" | "show --property=ActiveState -"*) echo inactive ;;
"show --property=ActiveState "*) echo activating ;;
"show --property=Description 0" | "show --property=Description -"*) echo belay-update.service ;;
"show --property=Description "*) cat DIR/of ;;
esac
`

// Whenever the unit of an earlier call ends while the hook looks at it, the program is run then, and the hook tells its answer.
func TestHookMeetsTheEndOfItsUnit(t *testing.T) {
	for _, of := range []string{"apply u-1 v1", "apply u-0 v1"} {
		for left := 1; left <= 5; left++ {
			h := newHostHook(t)
			h.write("nsenter", strings.ReplaceAll(endingNsenter, "DIR", h.dir))
			h.write("of", of)
			h.write("left", fmt.Sprint(left))
			if _, code := h.call("apply", "u-1", "v1"); code != 0 {
				t.Errorf("the unit of %q ends before call %d: exit code %d, want 0", of, left, code)
			}
			h.called(1, "apply u-1 v1 sha256:1 false")
		}
	}
}

// What changes the node is no process of the pod: it has the host's limits, and outlives the pod. Its exit code and output are those of the hook, and
// there is one at a time.
func TestHookOfTheManifestsUnderARealSystemd(t *testing.T) {
	tier.System(t, tier.Root, tier.Systemd)
	systemdenv.Run(t, nil, func(t *testing.T, _ string) {
		h := newHostHook(t)
		h.answers()
		h.goesOn()
		h.givesUp()
		h.timesOut()
	})
}

// answers are what the agent goes by.
func (h *hostHook) answers() {
	h.Helper()
	for _, c := range []struct {
		verb, revision, unit, out string
		code                      int
	}{
		{"observe", "v1", "", "", 0},
		{"prepare", "v1", "belay-prepare.service", "", 0},
		{"apply", "v1", "belay-update.service", "", 0},
		{"revert", "v1", "belay-update.service", "", 0},
		{"apply", "reboots", "", "{\"reason\": \"Boots\"}\n", 11},
		{"apply", "reboots", "", "{\"reason\": \"Boots\"}\n", 11}, // what failed is not in the way
		{"apply", "ends", "", "", 1},
		{"observe", "reboots", "", "{\"reason\": \"Boots\"}\n", 11},
	} {
		out, code := h.call(c.verb, "u-1", c.revision)
		if code != c.code || c.code != 0 && out != c.out {
			h.Errorf("%s of %s: exit code %d with %q, want %d with %q", c.verb, c.revision, code, out, c.code, c.out)
		}
		if in := strings.Contains(out, ".service\n"); c.code == 0 && (in != (c.unit != "") || !strings.Contains(out, c.unit+"\n")) {
			h.Errorf("%s runs in %q, want the unit %q", c.verb, out, c.unit)
		}
	}
	h.called(8, "observe u-1 reboots sha256:1 false")
}

// goesOn has a hook killed, and another one called for the same attempt while the program runs.
func (h *hostHook) goesOn() {
	h.Helper()
	hook, _ := h.start("apply", "u-2", "hangs")
	h.called(9, "apply u-2 hangs sha256:1 false")
	h.kill(hook, "belay-update.service")
	again, out := h.start("apply", "u-2", "hangs")
	if err := os.WriteFile(filepath.Join(h.dir, "go"), nil, 0o600); err != nil {
		h.Fatal(err)
	}
	<-again.Done()
	if err := again.Err(); err != nil || !strings.Contains(out.String(), "belay-update.service") {
		h.Errorf("the second hook of the attempt ends with %v and %q", err, out)
	}
	h.called(10, "apply u-2 hangs sha256:1 false")
}

// givesUp has a hook killed, and one of another attempt called while the program runs.
func (h *hostHook) givesUp() {
	h.Helper()
	if err := os.Remove(filepath.Join(h.dir, "go")); err != nil {
		h.Fatal(err)
	}
	hook, _ := h.start("apply", "u-3", "hangs")
	h.called(11, "apply u-3 hangs sha256:1 false")
	h.kill(hook, "belay-update.service")
	if _, code := h.call("revert", "u-4", "v1"); code != 0 {
		h.Errorf("the hook of another attempt has the exit code %d, want 0", code)
	}
	h.called(12, "revert u-4 v1 sha256:1 false")
}

// timesOut has a program that does not end by itself, called by one hook, and then by another that waits for it.
func (h *hostHook) timesOut() {
	h.Helper()
	long := h.script
	h.script = h.short
	if out, code := h.call("apply", "u-5", "hangs"); code != 1 {
		h.Errorf("a program that goes on for too long: exit code %d with %q, want 1", code, out)
	}
	h.called(13, "apply u-5 hangs sha256:1 false")
	h.script = long
	hook, _ := h.start("apply", "u-6", "hangs")
	h.called(14, "apply u-6 hangs sha256:1 false")
	h.kill(hook, "belay-update.service")
	h.script = h.short
	if out, code := h.call("apply", "u-6", "hangs"); code != 1 {
		h.Errorf("one that an earlier hook has called: exit code %d with %q, want 1", code, out)
	}
	h.called(14, "apply u-6 hangs sha256:1 false")
	state, err := exec.CommandContext(h.Context(), "systemctl", "--user", "is-active", "belay-update.service").Output()
	if is := strings.TrimSpace(string(state)); is == "active" || is == "activating" {
		h.Errorf("after its time the unit is %s (%v)", is, err)
	}
}
