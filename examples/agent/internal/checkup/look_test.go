// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkup

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/examples/agent/internal/node"
	"github.com/belayproject/belay/examples/internal/agent/apiserver"
	"github.com/belayproject/belay/examples/internal/agent/doctor"
	"github.com/belayproject/belay/examples/internal/agent/history"
	"github.com/belayproject/belay/examples/internal/agent/report"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/lkg"
)

const kubelet = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 91\n"

// run is the command line of an agent whose state directory has a record.
func run(t *testing.T) *settings.Run {
	t.Helper()
	dir := t.TempDir()
	s := &settings.Run{Local: *settings.Defaults(), NodeName: "n1", Source: "directory=" + dir, Render: filepath.Join(dir, "rendered")}
	s.ProbeInterval, s.ProbeTimeout, s.BackoffMin, s.BackoffMax = time.Second, time.Second, time.Second, time.Second
	s.RetryMin, s.RetryMax, s.Grace, s.Lease = time.Second, time.Second, time.Second, time.Minute
	s.AckDeadline, s.OnDrift, s.DriftInterval = time.Minute, settings.DriftReport, time.Second
	s.VerifyFor, s.VerifyEvery, s.VerifyWithin, s.ApplyTimeout = time.Second, time.Second, time.Minute, time.Minute
	s.InitConfig, s.StateDir = filepath.Join(dir, "kubelet.yaml"), filepath.Join(dir, "state")
	if err := os.WriteFile(s.InitConfig, []byte(kubelet), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := checkpoint.Open(s.StateDir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tracker, err := lkg.NewTracker(t.Context(), store, lkg.Options{Version: settings.Version()})
	if err != nil {
		t.Fatal(err)
	}
	if err := tracker.SetDesired(t.Context(), lkg.Outcome{Kind: lkg.DesiredEmpty}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

// examine gives the levels of the findings by check, and all that they say.
func examine(t *testing.T, s *settings.Run) (map[string]doctor.Level, string) {
	t.Helper()
	f, err := Look(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	levels, text := map[string]doctor.Level{}, ""
	for _, g := range doctor.Examine(f).Findings {
		levels[g.Check] = g.Level
		text += g.What + "\n"
	}
	return levels, text
}

// C-08: the doctor works while the agent is dead, from the disk and the flags alone.
func TestDoctorOfADeadAgent(t *testing.T) {
	s := run(t)
	levels, text := examine(t, s)
	for check, want := range map[string]doctor.Level{"settings": "", "agent": "problem", "records": "ok", "baseline": "ok", "source": "note", "config": "ok"} {
		if levels[check] != want {
			t.Errorf("check %s is %q, want %q:\n%s", check, levels[check], want, text)
		}
	}
	before, err := os.ReadDir(s.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	s.Render, s.Source = "", "nowhere"
	levels, text = examine(t, s)
	if levels["settings"] != "problem" || !strings.Contains(text, "--render") || !strings.Contains(text, "--source") {
		t.Errorf("of wrong flags it says %q:\n%s", levels["settings"], text)
	}
	s.StateDir = ""
	if levels, text = examine(t, s); levels["state"] != "problem" || strings.Contains(text, "--state-dir=") {
		t.Errorf("without a state directory it says %q, want one problem of the check state:\n%s", levels["state"], text)
	}
	s.StateDir = filepath.Join(t.TempDir(), "absent")
	if levels, text = examine(t, s); levels["state"] != "problem" || levels["agent"] != "" {
		t.Errorf("of an absent directory it says %v:\n%s", levels, text)
	}
	if _, err := os.Stat(s.StateDir); err == nil {
		t.Error("the doctor made the state directory")
	}
	after, err := os.ReadDir(filepath.Join(filepath.Dir(s.InitConfig), "state"))
	if err != nil || len(after) != len(before) {
		t.Errorf("the state directory holds %v (%v), want %v", after, err, before)
	}
}

// R-CS-84: explain names the origin of each field and none of its values, from the disk alone.
func TestExplainOfADeadAgent(t *testing.T) {
	s := run(t)
	e, err := node.Explain(t.Context(), s.StateDir, s.Options())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.WriteStory(&out, report.Table, report.Story{
		Document: report.Build(time.Now(), nil, e), Fields: e.Fields,
		History: []history.Entry{{N: 1, Kind: history.RolledBack, At: time.Now(), Why: "it crashed", Times: 3, Last: time.Now()}},
	}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "  maxPods     the local config (init)\n") || strings.Contains(text, "91") || !strings.Contains(text, "RolledBack (3 times, last ") {
		t.Errorf("want the field maxPods of the local config, without its value:\n%s", text)
	}
	out.Reset()
	if err := report.WriteStory(&out, report.JSON, report.Story{Fields: e.Fields}); err != nil || !strings.Contains(out.String(), `"path": "maxPods"`) {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

// What systemctl shows of a unit.
func TestUnitIsRead(t *testing.T) {
	for out, want := range map[string]doctor.Unit{
		"Restart=always\nStartLimitIntervalUSec=0\nLoadState=loaded\nUnitFileState=enabled\n":           {Loaded: true, Enabled: true, Restart: "always"},
		"Restart=on-failure\nStartLimitIntervalUSec=10s\nLoadState=loaded\nUnitFileState=disabled\n":    {Loaded: true, Restart: "on-failure", Limited: true},
		"Restart=no\nStartLimitIntervalUSec=infinity\nLoadState=not-found\nUnitFileState=\n":            {Restart: "no"},
		"Restart=always\nStartLimitIntervalUSec=0\nLoadState=loaded\nUnitFileState=enabled-runtime\n\n": {Loaded: true, Enabled: true, Restart: "always"},
	} {
		var got doctor.Unit
		if readUnit(&got, out); got != want {
			t.Errorf("%q is read as %+v, want %+v", out, got, want)
		}
	}
}

// C-08: what is asked at the API server is what the parts need that the flags pick; of an agent that takes orders, also what orders need.
func TestServerIsAskedForWhatTheFlagsNeed(t *testing.T) {
	const orders, leases = "get list watch nodeshadows, patch nodeshadows/status", "agents: get create update delete leases"
	for _, c := range []struct {
		source, hooks, leases string
		kind                  string
		want, not             []string
	}{
		{"nodeconfig", "", "agents", apiserver.LookForNodeConfig, []string{"patch nodeconfigs/status"}, []string{"nodeshadows", "revisions", "leases"}},
		{"shadow", "", "", apiserver.LookForNodeShadow, []string{orders, "get revisions"}, []string{"nodeconfigs", "leases"}},
		{"shadow", "", "agents", apiserver.LookForNodeShadow, []string{orders, "get revisions", leases}, []string{"nodeconfigs"}},
		{
			"nodeconfig", "/hooks", "agents", apiserver.LookForNodeConfig,
			[]string{"patch nodeconfigs/status", orders, leases}, []string{"revisions"},
		},
		{"none", "/hooks", "", "", []string{orders}, []string{"nodeconfigs", "revisions", "leases"}},
	} {
		s := run(t)
		s.Source, s.Hooks, s.LeaseNamespace = c.source, c.hooks, c.leases
		setup := setupOf(s)
		text := asked("", setup.Rules)
		for namespace, rules := range setup.Namespaced {
			text += asked(namespace+": ", rules)
		}
		if setup.Source != c.kind {
			t.Errorf("%+v: it looks for %q", c, setup.Source)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%+v: it asks for\n%swant %s", c, text, want)
			}
		}
		for _, not := range c.not {
			if strings.Contains(text, not) {
				t.Errorf("%+v: it asks for\n%swant nothing of %s", c, text, not)
			}
		}
	}
}

// asked are rights in the words of the table above.
func asked(where string, rules []rbacv1.PolicyRule) string {
	var all []string
	for _, r := range rules {
		all = append(all, strings.Join(r.Verbs, " ")+" "+strings.Join(r.Resources, " "))
	}
	return where + strings.Join(all, ", ") + "\n"
}
