// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/agent/doctor"
	"github.com/belayproject/belay/lkg"
)

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func ref(n string) lkg.Ref {
	return lkg.Ref{Namespace: "ns", Name: n, UID: n, Key: "kubelet", Digest: "sha256:" + n}
}

// well is a node on which nothing is wrong.
func well() doctor.Facts {
	yes := true
	return doctor.Facts{
		Now: noon(), Source: "nodeconfig", Running: &yes,
		Dir: &doctor.Dir{Path: "/var/lib/agent", Mode: 0o700, FileSystem: "ext4"},
		Explanation: &configsync.Explanation{
			State: lkg.State{
				Current: lkg.Assignment{Ref: ref("a"), At: noon().Add(-2 * time.Hour)}, LastKnownGood: ref("a"),
				Desired: lkg.Outcome{Kind: lkg.DesiredCorrect, At: noon().Add(-time.Hour)},
			},
			Next: lkg.Verdict{Use: ref("a"), Role: lkg.RoleCurrent, Origin: lkg.OriginInit,
				Condition: lkg.Condition{Message: "using current (UID: a)"}},
			Limits: lkg.Limits{Trial: 10 * time.Minute},
		},
		Clock:  &doctor.Clock{Hardware: true, Known: true, Synchronized: true},
		Unit:   &doctor.Unit{Name: "agent.service", Loaded: true, Enabled: true, Restart: "always"},
		Server: &doctor.Server{Kind: "NodeConfig", Names: true},
	}
}

// C-08: each half-configured setup is named by one finding with a remedy, and nothing is said of what is well.
func TestEachTroubleIsNamed(t *testing.T) {
	if r := doctor.Examine(well()); r.Problems != 0 || r.Unknown != 0 || len(r.Findings) < 10 {
		t.Fatalf("of a node on which nothing is wrong: %+v", r)
	}
	for _, c := range troubles() {
		f := well()
		c.spoil(&f)
		r := doctor.Examine(f)
		var bad []doctor.Finding
		for _, g := range r.Findings {
			if g.Level != doctor.OK {
				bad = append(bad, g)
			}
		}
		if len(bad) != 1 {
			t.Errorf("%s: %d findings, want 1: %+v", c.name, len(bad), bad)
			continue
		}
		got := bad[0]
		if got.Check != c.check || got.Level != c.level || !strings.Contains(got.What, c.what) {
			t.Errorf("%s: %+v, want %s of %s with %q", c.name, got, c.level, c.check, c.what)
		}
		if got.Level == doctor.Problem && got.Remedy == "" {
			t.Errorf("%s: no remedy", c.name)
		}
		if want := map[doctor.Level]int{doctor.Problem: r.Problems, doctor.Unknown: r.Unknown,
			doctor.Note: 1}[c.level]; want != 1 {
			t.Errorf("%s: counted %d problems and %d unknown", c.name, r.Problems, r.Unknown)
		}
	}
}

type trouble struct {
	name  string
	spoil func(f *doctor.Facts)
	check string
	level doctor.Level
	what  string
}

// troubles are one each.
func troubles() []trouble {
	return slices.Concat(troublesOfTheMachine(), troublesOfConfigs(), troublesOfTheChild())
}

func troublesOfTheChild() []trouble {
	dead := func(how string, last ...string) func(f *doctor.Facts) {
		return func(f *doctor.Facts) {
			f.Child = &doctor.Child{How: how, Ended: noon().Add(-7 * time.Second), Last: last,
				Trouble: "not healthy: ended: exit status 1"}
		}
	}
	return []trouble{
		{"a dead child", dead("exit status 1 after 3s"), "child", "problem",
			"no child runs: exit status 1 after 3s; the last one ended 7s ago"},
		{"a child that can't be started", func(f *doctor.Facts) {
			f.Child = &doctor.Child{Trouble: "the child can't be started: stat /usr/bin/kubelet: no such file or directory"}
		}, "child", "problem", "/usr/bin/kubelet"},
		{"a child that keeps ending", func(f *doctor.Facts) {
			dead("exit status 1 after 3s")(f)
			f.Child.PID, f.Child.Restarts, f.Child.LastRestart = 7, 3, noon().Add(-time.Minute)
		}, "child", "problem", "3 restarts within 10 minutes"},
		{"a sick child", func(f *doctor.Facts) {
			f.Child = &doctor.Child{PID: 7, Trouble: `not healthy: required probe "healthz" fails`}
		}, "child", "problem", `required probe "healthz" fails`},
		{"files that are not read", func(f *doctor.Facts) { f.Baseline.Ignored = []string{"kubelet.bak"} }, "baseline", "note", `"kubelet.bak"`},
	}
}

// A child that runs again, and has ended long ago, is no problem.
func TestAChildThatRunsIsFine(t *testing.T) {
	f := well()
	f.Child = &doctor.Child{PID: 7, How: "exit status 1", Ended: noon().Add(-time.Hour), Restarts: 5,
		LastRestart: noon().Add(-time.Hour)}
	if r := doctor.Examine(f); r.Problems != 0 {
		t.Errorf("of a child that runs: %+v", r)
	}
}

// C-08: a dead child is shown with its last lines, and the next step fits what they say.
func TestTheNextStepFitsTheLastLines(t *testing.T) {
	for line, step := range map[string]string{
		`err="failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint \"unix:///run/containerd/containerd.sock\": connection refused"`: "start the container runtime",
		`err="write /var/lib/kubelet/x: no space left on device"`:                                      "free space",
		`err="unrecognized feature gate: NoSuchGate"`:                                                  "take the feature gate out",
		`err="configured policy \"none\" differs from state checkpoint policy \"static\""`:             "take away the state file",
		`err="failed to validate kubelet configuration, error: invalid configuration: maxPods"`:        "correct the fields",
		`err="unable to load client CA file /etc/ca.crt: open /etc/ca.crt: no such file or directory"`: "put the file that the line names back",
		`err="listen tcp 127.0.0.1:10248: bind: address already in use"`:                               "ss -ltnp",
		`anything else`: "mend what its last lines name",
	} {
		f := well()
		f.Child = &doctor.Child{How: "exit status 1 after 1s", Ended: noon(), Last: []string{"before", line}}
		var got doctor.Finding
		for _, g := range doctor.Examine(f).Findings {
			if g.Check == "child" {
				got = g
			}
		}
		if !strings.HasPrefix(got.Remedy, step) && !strings.Contains(got.Remedy, step) ||
			!slices.Equal(got.Lines, f.Child.Last) {
			t.Errorf("of %q: next step %q, lines %q; want %q and the lines", line, got.Remedy, got.Lines, step)
		}
	}
}

func troublesOfTheMachine() []trouble {
	return []trouble{
		{"a flag is wrong", func(f *doctor.Facts) { f.Settings = []error{errors.New(`--render="": must be set`)} }, "settings", "problem", "--render"},
		{"no state directory", func(f *doctor.Facts) { f.Dir = nil }, "state", "problem", "switched off here"},
		{"an absent directory", func(f *doctor.Facts) { f.Dir.Err = fs.ErrNotExist }, "state", "problem", "is not there"},
		{"a directory that can't be read", func(f *doctor.Facts) { f.Dir.Err = fs.ErrPermission }, "state", "unknown",
			"can't be looked at"},
		{"a file", func(f *doctor.Facts) { f.Dir.NotDir = true }, "state", "problem", "not a directory"},
		{"an open directory", func(f *doctor.Facts) { f.Dir.Mode = 0o750 }, "state", "problem", "mode 0750"},
		{"somebody else's directory", func(f *doctor.Facts) { f.Dir.Foreign = true }, "state", "problem", "another user"},
		{"a directory in memory", func(f *doctor.Facts) { f.Dir.FileSystem = "tmpfs" }, "state", "problem",
			"a reboot forgets"},
		{"a strange file system", func(f *doctor.Facts) { f.Dir.FileSystem = "" }, "state", "note", "not shown to outlive"},
		{"no program that proves", func(f *doctor.Facts) { f.Proof = errors.New("no such file") }, "proof", "problem",
			"no such file"},
		{"no agent", func(f *doctor.Facts) { f.Running = new(bool) }, "agent", "problem", "no agent is running"},
		{"no hardware clock", func(f *doctor.Facts) { f.Clock.Hardware = false }, "clock", "note", "while it is off"},
		{"a clock of its own", func(f *doctor.Facts) { f.Clock.Synchronized = false }, "clock", "note", "not synchronized"},
		{"a clock that was set back", func(f *doctor.Facts) { f.Now = noon().Add(-3 * time.Hour) }, "clock", "problem",
			"set back"},
		{"a unit that stays down", func(f *doctor.Facts) { f.Unit.Restart = "on-failure" }, "restart", "problem",
			"Restart=on-failure"},
		{"a unit that is given up", func(f *doctor.Facts) { f.Unit.Limited = true }, "restart", "problem", "given up"},
		{"a unit that isn't enabled", func(f *doctor.Facts) { f.Unit.Enabled = false }, "restart", "problem",
			"come with a boot"},
		{"no unit", func(f *doctor.Facts) { f.Unit.Loaded = false }, "restart", "problem", "there is no unit"},
		{"no service manager", func(f *doctor.Facts) { f.Unit.Err = errors.New("no bus") }, "restart", "unknown", "no bus"},
		{"no server", func(f *doctor.Facts) { f.Server = &doctor.Server{Err: errors.New("refused")} }, "server", "problem",
			"no answer"},
		{"no definition", func(f *doctor.Facts) { f.Server.NotServed = true }, "server", "problem", "doesn't know the kind"},
		{"no object", func(f *doctor.Facts) { f.Server.Absent = true }, "server", "problem", "there is no NodeConfig"},
		{"no rollout yet", func(f *doctor.Facts) {
			f.Server.Kind, f.Server.Absent, f.Server.Awaited = "NodeShadow", true,
				true
		}, "server", "note", "no Rollout has selected it"},
		{"a field is dropped", func(f *doctor.Facts) { f.Server.Drops = []string{"a field"} }, "server", "problem",
			"drops what is written"},
		{"a right is missing", func(f *doctor.Facts) { f.Server.Denied = []string{"get configmaps"} }, "rights", "problem",
			"may not get configmaps"},
		{"rights are unknown", func(f *doctor.Facts) { f.Server.Unasked = errors.New("503") }, "rights", "unknown", "503"},
	}
}

func troublesOfConfigs() []trouble {
	state := func(f *doctor.Facts) *lkg.State { return &f.Explanation.State }
	desired := func(k lkg.OutcomeKind) func(f *doctor.Facts) {
		return func(f *doctor.Facts) { state(f).Desired.Kind, state(f).Desired.Cause = k, "because of a cause" }
	}
	return []trouble{
		{"records that can't be read", func(f *doctor.Facts) { f.Explanation, f.ExplainErr = nil, errors.New("EIO") },
			"records", "problem", "EIO"},
		{"a damaged record", func(f *doctor.Facts) {
			state(f).Notices = []lkg.Notice{{Stream: "current", Err: errors.New("cut off")}}
		}, "records", "problem", `"current"`},
		{"no local config", func(f *doctor.Facts) { f.Baseline.None = true }, "baseline", "problem", "no local config is named"},
		{"a bad local config", func(f *doctor.Facts) {
			f.Explanation.Next = lkg.Verdict{Refuse: &lkg.BaselineError{Origin: lkg.OriginInit, Err: errors.New("line 3")}}
		}, "baseline", "problem", "refuses"},
		{"a source that nobody looks at", func(f *doctor.Facts) { f.Source = "none" }, "source", "problem",
			"doesn't look at it"},
		{"no source", func(f *doctor.Facts) { f.Source, f.Server.Names = "none", false }, "source", "note", "no source"},
		{"neither source nor state", func(f *doctor.Facts) {
			f.Source, f.Server, f.Dir = "", nil, &doctor.Dir{Mode: 0o700, FileSystem: "xfs"}
		}, "source", "note", "no source"},
		{"a source that was never seen", desired(lkg.DesiredUnknown), "source", "problem", "never seen"},
		{"an empty source", desired(lkg.DesiredEmpty), "source", "note", "names no config"},
		{"an invalid source", desired(lkg.DesiredInvalid), "source", "problem", "because of a cause"},
		{"a missing object", desired(lkg.DesiredMissing), "source", "problem", "(Missing)"},
		{"another object", desired(lkg.DesiredMismatch), "source", "problem", "(Mismatch)"},
		{"a forbidden object", desired(lkg.DesiredForbidden), "source", "problem", "(Forbidden)"},
		{"a silent server", desired(lkg.DesiredUnreachable), "source", "problem", "(Unreachable)"},
		{"a rejected config", func(f *doctor.Facts) {
			f.Explanation.Next.Rejected = &lkg.BadEntry{Ref: ref("a"), Reason: "failed to validate"}
		}, "config", "problem", "failed to validate"},
		{"nothing is left", func(f *doctor.Facts) { f.Explanation.Next.Alarm = "it crashes too" }, "config", "problem",
			"it crashes too"},
		{"a trial that goes on", func(f *doctor.Facts) {
			state(f).LastKnownGood, state(f).Current.At = ref("b"),
				noon().Add(-time.Hour)
		}, "trial", "note", "on trial"},
		{"a trial that doesn't end", func(f *doctor.Facts) {
			state(f).LastKnownGood, f.Child = ref("b"), &doctor.Child{PID: 7, Failing: []string{"healthz: 500"}}
		}, "trial", "problem", "failing now: healthz: 500"},
	}
}

// What helps against a rejected config is about the config: its runtime is not that of the node, and bytes that are too
// many are not taken on a second try. The command to try it again is whole.
func TestStepAfterARejection(t *testing.T) {
	steps := map[string]string{
		`validate CRI v1 runtime API for endpoint "unix:///wrong.sock"`: "correct containerRuntimeEndpoint in the config",
		"open /etc/tls.crt: no such file or directory":                  "belay-agent forget-bad a --state-dir=/state",
		"a line that says nothing":                                      "assign a new version; or have this one tried again",
	}
	for last, want := range steps {
		f := well()
		f.Dir.Path = "/state"
		f.Explanation.Next.Rejected = &lkg.BadEntry{Ref: ref("a"), Reason: "crash loop", Last: []string{last}}
		found := doctor.Examine(f).Findings
		i := slices.IndexFunc(found, func(g doctor.Finding) bool { return g.Check == "config" })
		if i < 0 || !strings.Contains(found[i].Remedy, want) {
			t.Errorf("%s: %+v, want the step %q", last, found, want)
		}
	}
}

// A trial is overdue after three times its length, and not within an hour.
func TestOverdue(t *testing.T) {
	for _, c := range []struct {
		ago, needed time.Duration
		want        bool
	}{
		{time.Hour, time.Minute, false}, {time.Hour + 1, time.Minute, true},
		{3 * time.Hour, time.Hour, false}, {3*time.Hour + 1, time.Hour, true}, {time.Hour + 1, 0, true},
	} {
		if got := doctor.Overdue(noon().Add(-c.ago), c.needed, noon()); got != c.want {
			t.Errorf("a trial of %s after %s: overdue %t, want %t", c.needed, c.ago, got, c.want)
		}
	}
	if doctor.Overdue(time.Time{}, time.Minute, noon()) {
		t.Error("a trial that never began is overdue")
	}
}
