// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/internal/testproc"
)

// standIn is a program that ends as a kubelet does: refuses what holds "bad", passes over "unknown", hangs on "hang".
// It counts its runs. A real start, without the flag for a lock, ends as if this were no place for a kubelet.
const standIn = `#!/bin/sh
echo run >> "$(dirname "$0")/runs"
for arg; do case "$arg" in --config=*) config="${arg#--config=}";; esac; done
grep -q hang "$config" && exec sleep 60
case "$*" in *--exit-on-lock-contention*) ;; *) echo 'E0101 00:00:00.000000 1 run.go:72] "command failed" err="no place"' >&2; exit 1;; esac
grep -q unknown "$config" && echo 'I0101 00:00:00.0 1 codec.go:1] "Using lenient decoding as strict decoding failed" err="strict decoding error: unknown field \"unknown\""' >&2
if grep -q bad "$config"; then
	echo 'E0101 00:00:00.000000 1 run.go:72] "command failed" err="failed to validate kubelet configuration, error: invalid: \"secret-value\" is bad, path: &TypeMeta{secret-value}"' >&2
	exit 1
fi
echo 'E0101 00:00:00.000000 1 run.go:72] "command failed" err="failed to run Kubelet: cannot exit on lock file contention: no lock file specified"' >&2
exit 1
`

// A stage is a prover beside a stand-in for the kubelet.
type stage struct {
	*testing.T
	dir     string
	options ProverOptions
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "kubelet")
	testproc.WriteProgram(t, program, standIn)
	return &stage{t, dir, ProverOptions{
		Program: program, Dir: filepath.Join(dir, "prover"), Store: &configsynctest.Disk{},
		Control: func(context.Context) ([]byte, error) { return []byte(head), nil },
	}}
}

func (s *stage) prover() *prover {
	s.Helper()
	p, err := NewProver(s.options)
	if err != nil {
		s.Fatal(err)
	}
	return p.(*prover)
}

func (s *stage) runs() int {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "runs"))
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	return strings.Count(string(text), "run")
}

// R-CS-41: the kubelet's refusal is that of the config, in its words without its values; fields that it does not know
// are refused in the config of a source alone; what tells nothing is undecided.
func TestProverSaysWhatTheKubeletSays(t *testing.T) {
	for _, c := range []struct{ name, uid, text, want string }{
		{"good", "u", "maxPods: 1\n", "<nil>"},
		{"refused", "u", "clusterDomain: secret-value\nbad: 1\n", `the kubelet refuses it: invalid: "…" is bad`},
		{
			"unknown field", "u", "unknown: secret-value\n",
			`the kubelet refuses it: the kubelet does not know the field "unknown"`,
		},
		{"unknown field, local", "", "unknown: 1\n", "<nil>"},
		{"hangs", "u", "hang: 1\n", "asking the kubelet: the kubelet was killed: it did not end in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.options.Timeout = 2 * time.Second
			err := s.prover().Inspect(t.Context(), Key, object(c.uid, head+c.text, nil))
			if got := strings.TrimPrefix(fmt.Sprint(err), configsync.ErrUndecided.Error()+": "); got != c.want {
				t.Errorf("Inspect = %q, want %q", got, c.want)
			}
			if c.name == "hangs" != errors.Is(err, configsync.ErrUndecided) {
				t.Errorf("Inspect = %v, want only a kubelet that hangs to be undecided", err)
			}
		})
	}
}

// Nothing is known where the program is missing, or refuses what the node runs with.
func TestProverIsUndecidedWithoutEvidence(t *testing.T) {
	gone := newStage(t)
	gone.options.Program = filepath.Join(gone.dir, "gone")
	broken := newStage(t)
	broken.options.Control = func(context.Context) ([]byte, error) {
		return []byte(head + "clusterDomain: secret-value\nbad: 2\n"), nil
	}
	for name, s := range map[string]*stage{"no program": gone, "the config in use is refused too": broken} {
		if err := s.prover().Inspect(t.Context(), Key,
			object("u", head+"clusterDomain: secret-value\nbad: 1\n", nil)); !errors.Is(err, configsync.ErrUndecided) {
			t.Errorf("%s: Inspect = %v, want ErrUndecided", name, err)
		}
	}
}

// A kubelet that does not answer keeps no node from a config for ever: the third judgement leaves it to the trial,
// over restarts, and is the last. A refusal in between ends the count.
func TestProverLeavesItToTheTrialInTheEnd(t *testing.T) {
	s := newStage(t)
	s.options.Control = func(context.Context) ([]byte, error) { return []byte(head + "bad: 2\n"), nil }
	bad := object("u", head+"bad: 1\n", nil)
	for i := 1; i < maxTries; i++ {
		p := s.prover()
		if err := p.Inspect(t.Context(), Key, bad); !errors.Is(err, configsync.ErrUndecided) {
			t.Fatalf("judgement %d: Inspect = %v, want ErrUndecided", i, err)
		}
		err := p.Recall(s.options.Store).Inspect(t.Context(), Key, bad)
		if !errors.Is(err, configsync.ErrUndecided) || !strings.Contains(err.Error(), "it refuses the config in use too") {
			t.Fatalf("judgement %d: Recall = %v, want ErrUndecided with the reason", i, err)
		}
	}
	if err := s.prover().Inspect(t.Context(), Key, bad); err != nil {
		t.Fatalf("judgement %d: Inspect = %v, want nil: the trial decides", maxTries, err)
	}
	runs, last := s.runs(), s.prover()
	if err := last.Inspect(t.Context(), Key, bad); err != nil || s.runs() != runs {
		t.Errorf("after the last judgement Inspect = %v with %d runs, want nil without one", err, s.runs()-runs)
	}
	if err := last.Recall(s.options.Store).Inspect(t.Context(), Key, bad); err != nil {
		t.Errorf("after the last judgement Recall = %v, want nil", err)
	}

	other := object("u", head+"bad: 3\n", nil)
	if err := last.Inspect(t.Context(), Key, other); !errors.Is(err, configsync.ErrUndecided) {
		t.Fatalf("another config: Inspect = %v, want ErrUndecided", err)
	}
	last.o.Control = nil
	for range maxTries {
		if err := last.Inspect(t.Context(), Key, other); err == nil || errors.Is(err, configsync.ErrUndecided) {
			t.Errorf("once the config is to blame Inspect = %v, want a refusal", err)
		}
	}
}

// A judgement that the caller ends is none.
func TestEndedJudgementsAreNotCounted(t *testing.T) {
	s := newStage(t)
	p, hangs := s.prover(), object("u", head+"hang: 1\n", nil)
	for range maxTries + 1 {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if err := p.Inspect(ctx, Key, hangs); !errors.Is(err, configsync.ErrUndecided) {
			t.Errorf("Inspect = %v, want ErrUndecided", err)
		}
		cancel()
	}
}

// An answer is kept over restarts, for the content of document and program; another program is asked anew.
func TestAnswersAreKeptForTheBinary(t *testing.T) {
	s := newStage(t)
	bad := object("u", head+"bad: 1\n", nil)
	first := s.prover().Inspect(t.Context(), Key, bad)
	if first == nil || errors.Is(first, configsync.ErrUndecided) {
		t.Fatalf("Inspect = %v, want a refusal", first)
	}
	runs := s.runs()
	again := s.prover()
	if err := again.Inspect(t.Context(), Key, bad); fmt.Sprint(err) != first.Error() || s.runs() != runs {
		t.Errorf("after a restart Inspect = %v with %d runs, want %v without one", err, s.runs()-runs, first)
	}
	if err := again.Recall(s.options.Store).Inspect(t.Context(), Key, bad); fmt.Sprint(err) != first.Error() ||
		s.runs() != runs {
		t.Errorf("Recall = %v, want %v", err, first)
	}
	testproc.WriteProgram(t, s.options.Program, strings.Replace(standIn, "grep -q bad", "grep -q worse", 1))
	if err := again.Recall(s.options.Store).Inspect(t.Context(), Key, bad); !errors.Is(err, configsync.ErrUndecided) {
		t.Errorf("Recall with another program = %v, want ErrUndecided", err)
	}
	if err := again.Inspect(t.Context(), Key, bad); err != nil || s.runs() == runs {
		t.Errorf("another program = %v, want nil from a run", err)
	}
}

// The flags of the node's kubelet are kept, but for those that would reach out of the sandbox.
func TestKeptFlags(t *testing.T) {
	got := keptFlags([]string{
		"--config=/a", "--node-ip=1.2.3.4", "--kubeconfig", "/b", "--v", "2", "--root_dir=/c", "--container-runtime-endpoint",
		"unix:///d", "--exit-on-lock-contention",
		"--lock-file", "/e", "-v=3", "--pod-manifest-path=/f", "--cloud-provider=external", "--config-dir",
	})
	if want := []string{"--node-ip=1.2.3.4", "--v", "2", "-v=3", "--cloud-provider=external"}; !slices.Equal(got, want) {
		t.Errorf("keptFlags = %q, want %q", got, want)
	}
}

// The reason is the last error in the kubelet's words: of each form of its log.
func TestReason(t *testing.T) {
	for log, want := range map[string]string{
		"": "it ended and said nothing",
		`E1 x` + "\n" + `E0101 10:00:00.1 9 run.go:72] "command failed" err="failed to run Kubelet: a \"b\""` +
			"\n": `a "b"`,
		"E0101 10:00:00.1 9 run.go:72] \"command failed\" err=<\n\tfailed to validate kubelet configuration, " +
			"error: [a, b], path: &X{1}\n >\n": "[a, b]",
		`{"ts":1,"msg":"command failed","err":"failed to run Kubelet: /DIR/x"}` +
			"\n": "command failed: /x",
		"I0101 a\npanic: runtime error: x\n\ngoroutine 1\n": "panic: runtime error: x",
		`F0101 10:00:00.1 9 server.go:1] "Failed to start ContainerManager" err="no hidden value"` +
			"\n": "Failed to start ContainerManager: no … value",
		"Error: unknown flag: --x\n": "Error: unknown flag: --x",
	} {
		if got := reasonOf(log, []byte("a: hidden\n"), "/DIR"); got != want {
			t.Errorf("reasonOf(%q) = %q, want %q", log, got, want)
		}
	}
}

// What is wrong with the options is said at once.
func TestNewProverNamesWhatIsWrong(t *testing.T) {
	_, err := NewProver(ProverOptions{Program: "kubelet", Timeout: -1})
	for _, name := range []string{"Program", "Dir", "Timeout"} {
		if !strings.Contains(fmt.Sprint(err), "ProverOptions."+name) {
			t.Errorf("NewProver = %v, want it to name %s", err, name)
		}
	}
}
