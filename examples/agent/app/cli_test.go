// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/golden"
)

// R-CS-58, R-CS-61, R-CS-66, R-CS-84: what a person sees and can do on a node, with the agent running and without.
func TestSubCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "handwork")
	w.Flags = append(w.Flags, "--crash-loop-threshold=0", "--default-trial=2s")
	p := w.Start(t)
	v1 := w.good(t, "kubelet-v1")
	bad := w.push(t, "kubelet-v2", w.Config("featureGates: {NoSuchGate: true}\n"))
	e2e.Eventually(t, soon, "v2 is rejected", func() error { return w.hasRejected(t, string(bad.UID)) })
	e2e.Eventually(t, soon, "v1 is used again", func() error { return w.Uses(t, string(v1.UID)) })
	w.runs(t, v1)

	w.golden(t, "status-rolled-back.txt", "status")
	w.golden(t, "forget-bad.txt", "forget-bad", string(bad.UID))
	e2e.Eventually(t, soon, "v2 is tried again and rejected again", func() error { return w.hasRejected(t, string(bad.UID)) })
	w.fails(t, "rejected are "+string(bad.UID), "forget-bad", "no-such-uid")
	w.fails(t, "must be table, json or yaml", "status", "--output=wide")

	if code := p.Stop(t); code != 0 {
		t.Errorf("asked to stop, the agent exits with %d, want 0", code)
	}
	w.golden(t, "status-stopped.txt", "status")
	w.golden(t, "forget-bad-stopped.txt", "forget-bad", string(bad.UID))
	w.golden(t, "use-local-stopped.txt", "use-local", "--reason=drill")
	w.Start(t)
	e2e.Eventually(t, soon, "an agent that starts then uses the local config", func() error { return w.Uses(t, "") })
}

// A good config that stays away until the node is moved on: after use-local a newer config is taken up.
func TestAfterUseLocalANewerConfigIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "newer")
	w.Start(t)
	v1 := w.good(t, "newer-v1")
	out, err := w.Command(t, "use-local", "--state-dir="+w.StateDir, "--init-config="+w.Init, "--reason=drill")
	if err != nil {
		t.Fatal(err)
	}
	name := "use-local.txt"
	if strings.Contains(out, "not the assigned config") { // the agent has acted before it was asked what comes next
		name = "use-local-acted.txt"
	}
	golden.Check(t, name, string(plain(w, out)))
	e2e.Eventually(t, soon, "the local config is used", func() error { return w.Uses(t, "") })
	if err := w.hasRejected(t, string(v1.UID)); err != nil {
		t.Error(err)
	}
	v2 := w.good(t, "newer-v2")
	w.says(t, corev1.ConditionTrue, using(v2), "all checks passed")
}

func (w *world) golden(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := w.Command(t, append(args, "--state-dir="+w.StateDir, "--init-config="+w.Init)...)
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	golden.Check(t, name, string(plain(w, out)))
}

func (w *world) fails(t *testing.T, want string, args ...string) {
	t.Helper()
	out, err := w.Command(t, append(args, "--state-dir="+w.StateDir, "--init-config="+w.Init)...)
	if err == nil || !strings.Contains(err.Error(), want) || out != "" {
		t.Errorf("%q prints %q and %v, want an error with %q alone", args, out, err, want)
	}
}

// plain replaces what differs from run to run by words, and each UID by its number, in the order in which they first
// appear. Columns that are padded for what was replaced are narrowed.
func plain(w *world, out string) []byte {
	seen := map[string]string{}
	out = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f-]{27}\b`).ReplaceAllStringFunc(out, func(uid string) string {
		if seen[uid] == "" {
			seen[uid] = fmt.Sprintf("UID-%d", len(seen)+1)
		}
		return seen[uid]
	})
	out = strings.NewReplacer(w.Node, "NODE", w.Namespace, "NAMESPACE", w.StateDir, "STATE-DIR").Replace(out)
	for _, r := range []struct{ pattern, with string }{
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \((now|\d+[smhd] ago)\)`, "TIME"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "TIME"},
		{`process \d+`, "process N"},
		{`\bafter [0-9.hmsµ]+s\b`, "after SOME-TIME"},
		{`([EIWF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ `, "${1}TIME PID "},
		{`\b[0-9a-f]{12}\b  `, "DIGEST  "},
		{`(version: +)v\S+`, "${1}VERSION"},
		{` {2,}`, "  "},
	} {
		out = regexp.MustCompile(r.pattern).ReplaceAllString(out, r.with)
	}
	return []byte(out)
}

// Under a root whose flag has the shorthand -v, WithLogger leaves out the flag of the log that has it as well.
func TestUnderARootWithAnotherV(t *testing.T) {
	root := &cobra.Command{Use: "fleet"}
	verbose := root.PersistentFlags().BoolP("verbose", "v", false, "say more")
	root.AddCommand(NewCommand(WithLogger(klog.Background())))
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"agent", "run", "-v", "--help"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !*verbose || strings.Contains(out.String(), "--vmodule") {
		t.Errorf("verbose is %t, want true, and no flag of the log in %s", *verbose, out.String())
	}
}
