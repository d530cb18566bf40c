// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart_test

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/lkg"
)

// dying writes what a kubelet writes that can't start, with another time, process ID and port in each run, and exits.
const dying = `echo "I1127 12:00:00.000000 $$ server.go:1] started token=abc123"
echo "E1127 12:00:0$N.12345$N    $$ run.go:72] \"command failed\" err=\"failed to run Kubelet: port 1025$N is in use by pid $$\"" >&2
exit 3`

// L-CS-36: an end is told with its last lines, without secrets, and with a signature that two ends with one cause
// share. The probe has the same words for both, and says that the child has ended rather than not begun.
func TestAnEndHasTheLastLinesAndASignature(t *testing.T) {
	n := 0
	r := begin(t, restart.Options{
		BackoffMin: time.Millisecond, BackoffMax: time.Millisecond,
		Command: func(context.Context, lkg.Exit) (*exec.Cmd, error) {
			if n++; n > 3 {
				return self("wait"), nil
			}
			cmd := exec.Command("sh", "-c", dying)
			cmd.Env = []string{"PATH=/usr/bin:/bin", "N=" + strconv.Itoa(n)}
			return cmd, nil
		},
	})
	const want = `exit status 3: run.go:72] "command failed" err="failed to run Kubelet: port ? is in use by pid ?"`
	for range 3 {
		e := next(t, r.exits)
		if e.Signature != want {
			t.Errorf("the signature is %q, want %q", e.Signature, want)
		}
		lines := strings.Join(e.Last, "\n")
		if len(e.Last) != 2 || !strings.Contains(lines, "port 1025") || strings.Contains(lines, "abc123") {
			t.Errorf("the last lines are %q, want both without the token", e.Last)
		}
	}
}

func TestTheProbeSaysHowTheChildEnded(t *testing.T) {
	r := begin(t, restart.Options{
		BackoffMin: time.Hour,
		Command: func(context.Context, lkg.Exit) (*exec.Cmd, error) {
			return exec.Command("sh", "-c", "echo no disk; exit 4"), nil
		},
	})
	next(t, r.exits)
	err := r.Check(t.Context())
	var ended interface{ Ended() bool }
	if err == nil || err.Error() != "ended: exit status 4: no disk" || !errors.As(err, &ended) || !ended.Ended() {
		t.Errorf("after an end the probe says %v, want how it ended", err)
	}
}

// A stop that was asked for has no signature: it is no evidence, and the probe does not call it an end.
func TestAStopHasNoSignature(t *testing.T) {
	r := begin(t, restart.Options{BackoffMin: time.Hour}, "wait")
	r.up()
	r.restart()
	if e := next(t, r.exits); !e.planned || e.Signature != "" || len(e.Last) != 0 {
		t.Errorf("a stop is told as %+v, want no signature", e)
	}
}

func TestSignatures(t *testing.T) {
	for _, c := range []struct {
		name string
		how  string
		last []string
		want string
	}{
		{"nothing written", "signal: killed", nil, "signal: killed"},
		{"the last line", "exit status 1", []string{"a", "open 0x1f at 10s"}, "exit status 1: open ? at ?"},
		{
			"the last error of klog", "exit status 1",
			[]string{`E1127 19:00:00.000001 77 a.go:1] "first"`, `F1127 19:00:00.000001 77 b.go:2] "x" pod="\"a/b\""`, `I1127 19:00:00.000001 77 c.go:3] "bye"`},
			`exit status 1: b.go:2] "x" pod="?"`,
		},
		{"a panic", "exit status 2", []string{"panic: nil map", "", "goroutine 1 [running]:", "main.f(0x1)"}, "exit status 2: panic: nil map"},
		{"a UID", "exit status 1", []string{"pod 01234567-89ab-cdef-0123-456789abcdef v1beta1"}, "exit status 1: pod ? v1beta1"},
		{
			"a log in JSON", "exit status 1",
			[]string{`{"ts":1764270000123.4,"caller":"app/run.go:72","msg":"command failed","err":"no runtime"}`, `{"ts":1764270000124.5,"msg":"bye","v":0}`},
			`exit status 1: {"caller":"app/run.go:?","msg":"command failed","err":"no runtime"}`,
		},
		{
			"a fatal line above its stacks", "exit status 255",
			append([]string{`F1127 19:00:00.000001 77 b.go:2] cannot`}, slices.Repeat([]string{"goroutine 1 [running]:", "main.f()"}, 3)...),
			"exit status 255: b.go:2] cannot",
		},
		{"another log", "exit status 1", []string{"2026-11-27T19:00:00Z error: x"}, "exit status 1: error: x"},
	} {
		if got := restart.SignatureOf(c.how, c.last); got != c.want {
			t.Errorf("%s: signature %q, want %q", c.name, got, c.want)
		}
	}
	long := restart.SignatureOf("exit status 1", []string{strings.Repeat("é", 1000)})
	if len(long) > 240 || !strings.HasPrefix(long, "exit status 1: é") {
		t.Errorf("a long line gives %d bytes, %q", len(long), long)
	}
}
