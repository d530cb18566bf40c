// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/report"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/settings"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// What is wrong on the command line is said at once, with what would be right, before any server is asked.
func TestCommandLineIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"stats"}, exitUsage, []string{`there is no command "stats"`, "status"}},
		{[]string{"why"}, exitUsage, []string{"want kubectl belay why NODE, got 0 arguments"}},
		{[]string{"acknowledge", "fleet"}, exitUsage, []string{"want kubectl belay acknowledge ROLLOUT NODE"}},
		{[]string{"status", "-o=yaml"}, exitUsage, []string{`--output="yaml": must be text or json`}},
		{[]string{"plan", "--cycle=-1m"}, exitUsage, []string{`--cycle="-1m0s": must not be negative`}},
		{[]string{"plan", "--cycle=10m", "--worst-cycle=5m"}, exitUsage, []string{`--worst-cycle="5m0s": must be at least --cycle, 10m0s`}},
		{[]string{"plan", "--max-unavailable=-1"}, exitUsage, []string{`--max-unavailable="-1": must be a number of nodes`}},
		{[]string{"why", "node-1", "--max-unavailable=-1", "-o=x"}, exitUsage, []string{"must be a number of nodes", "must be text or json"}},
		{[]string{"abort", "--displace"}, exitUsage, []string{"unknown flag: --displace"}},
		{[]string{"history", "--diff=1"}, exitUsage, []string{`--diff="1": must be two numbers`}},
		{[]string{"pause", "--timeout=soon"}, exitUsage, []string{`--timeout="soon": must be a duration`}},
		{[]string{"pause", "--timeout=0s", "-o=x"}, exitUsage, []string{"must be more than 0", "must be text or json"}},
		{[]string{"rollback", "--to=-1"}, exitUsage, []string{`--to="-1": must be the number of an entry`}},
		{[]string{"pause", "--to=1"}, exitUsage, []string{"unknown flag: --to"}},
		{[]string{"doctor", "--namespace=A_b"}, exitUsage, []string{`--namespace="A_b"`}},
		{[]string{"status", "--kubeconfig=/does/not/exist"}, exitError, []string{"reading the kubeconfig", "/does/not/exist"}},
	} {
		var out bytes.Buffer
		command := newCommand(&out, &out)
		command.SetArgs(c.args)
		code, err := exitCode(command.ExecuteContext(t.Context()))
		if code != c.code || err == nil {
			t.Errorf("%q: code %d, error %v; want code %d", c.args, code, err, c.code)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: the error is %q, want %q in it", c.args, err, want)
			}
		}
	}
}

// S-CS-11: neither JSON nor an error holds what acts on a terminal, and JSON says the same as before.
func TestNothingActsOnATerminal(t *testing.T) {
	t.Parallel()
	hostile := map[string]string{"message": "a\x1b[2J\u009b1m\u202eb\u2028\U000e0001\x7f\nü"}
	var out, errs bytes.Buffer
	a := &app{out: &out, errs: &errs}
	must(t, a.print(&settings.Common{Output: "json"}, "", hostile))
	must(t, a.line(hostile))
	a.notef("%s", hostile["message"])
	say(&errs, "kubectl-belay: ", errors.Join(errors.New("first\x1b[1m"), errors.New("second")).Error())
	if got, want := errs.String(), "a?[2J?1m?b ??\nü\nkubectl-belay: first?[1m\nsecond\n"; got != want {
		t.Errorf("standard error is %q, want %q", got, want)
	}
	for _, r := range out.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("JSON holds %q", r)
		}
	}
	for read := json.NewDecoder(&out); read.More(); {
		var got map[string]string
		if err := read.Decode(&got); err != nil || !maps.Equal(got, hostile) {
			t.Errorf("JSON says %q, %v; want %q", got, err, hostile)
		}
	}
}

// What came of a verb is in the exit code: a stop that is not proven is none yet.
func TestAnswerIsTheExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer report.Answer
		want   int
	}{
		{report.Answer{Outcome: report.CarriedOut, Final: true}, exitDone},
		{report.Answer{Outcome: report.CarriedOut}, exitUnanswered},
		{report.Answer{Outcome: report.Refused, Final: true}, exitRefused},
		{report.Answer{Outcome: report.Unanswered}, exitUnanswered},
		{report.Answer{Outcome: report.Displaced, Final: true}, exitUnanswered},
	} {
		if got := codeOf(c.answer); got != c.want {
			t.Errorf("%s, final %t: code %d, want %d", c.answer.Outcome, c.answer.Final, got, c.want)
		}
	}
}

// A watch says once that something is not seen any more, and when it is again.
func TestSight(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	s := &sight{a: &app{errs: &errs}, last: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
	s.away(errors.New("no route\x1b[2J"))
	s.away(errors.New("no route"))
	s.seen()
	s.seen()
	if got, want := errs.String(), "Not seen since 12:00:00Z: no route?[2J\nSeen again\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

// A Rollout in a file is planned as it is there, over what the cluster knows of one of that name; what is no Rollout is refused.
func TestRolloutInAFile(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "rollout.yaml")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good := file("apiVersion: belay.dev/v1alpha1\nkind: Rollout\nmetadata: {name: fleet}\nspec: {revision: {name: v2, digest: x}, selector: {}}\n")
	seen := &view.Seen{}
	r, err := planned(seen, &settings.Plan{File: good}, "")
	if err != nil || r.Spec.Revision.Name != "v2" || r.Spec.Domain != v1alpha1.DefaultDomain {
		t.Errorf("a new one is %+v, %v", r, err)
	}
	is := v1alpha1.Rollout{}
	is.Name, is.UID, is.Generation, is.Status.Phase = "fleet", "r-1", 4, "Running"
	seen.Rollouts = []v1alpha1.Rollout{is}
	if r, err = planned(seen, &settings.Plan{File: good}, ""); err != nil || r.UID != "r-1" || r.Generation != 5 || r.Status.Phase != "Running" {
		t.Errorf("one that is there is %+v, %v", r, err)
	}
	for want, try := range map[string]func() error{
		`is "fleet", and not "gpu"`: func() error { _, err := planned(seen, &settings.Plan{File: good}, "gpu"); return err },
		`unknown field "stage"`: func() error {
			_, err := planned(seen, &settings.Plan{File: file("apiVersion: belay.dev/v1alpha1\nkind: Rollout\nspec: {stage: 1}\n")}, "")
			return err
		},
		`want "belay.dev/v1alpha1", "Rollout" and a name`: func() error { _, err := planned(seen, &settings.Plan{File: file("kind: Pod\n")}, ""); return err },
		`there is no Revision "v9"`:                       func() error { _, err := planned(seen, &settings.Plan{Revision: "v9"}, ""); return err },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
