// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

const trial = "../../../trial/"

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// trialHooks are the hooks of examples/trial, with a file of their own in place of that of a node.
func trialHooks(t *testing.T) nodeagent.Updater {
	t.Helper()
	const file = "/var/lib/belay-agent/trial"
	script := read(t, trial+"hook.sh")
	if strings.Count(script, file) != 1 {
		t.Fatalf("the hook names %s %d times, want once", file, strings.Count(script, file))
	}
	script = strings.Replace(script, file, filepath.Join(t.TempDir(), "runs"), 1)
	dir := t.TempDir()
	for _, verb := range []string{"observe", "disruption", "apply", "verify", "revert"} {
		testproc.WriteProgram(t, filepath.Join(dir, verb), script)
	}
	u, err := Hooks(dir, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// The hooks of the trial do what docs/getting-started.md says of them: each revision is well but "fatal", and a node goes back from that.
func TestHooksOfTheTrial(t *testing.T) {
	u := trialHooks(t)
	runs := func() protocol.Revision {
		o, err := u.Observe(t.Context())
		if err != nil || !o.CanRevert {
			t.Fatalf("observe: %+v, %v; want a way back", o, err)
		}
		return o.Current
	}
	if got := runs(); got.Name != "nothing" || got.Digest != "" {
		t.Errorf("at first the node runs %v, want nothing", got)
	}
	for _, step := range []struct {
		name string
		do   func(protocol.Revision) error
		want nodeagent.Verdict
	}{
		{"v1", func(r protocol.Revision) error { return u.Apply(t.Context(), nodeagent.Attempt{Key: "1", Revision: r}) }, nodeagent.Pass},
		{"fatal", func(r protocol.Revision) error { return u.Apply(t.Context(), nodeagent.Attempt{Key: "2", Revision: r}) }, nodeagent.Fail},
		{"v1", func(r protocol.Revision) error {
			return u.Revert(t.Context(), nodeagent.Attempt{Key: "3", Revision: r})
		}, nodeagent.Pass},
	} {
		r := protocol.Revision{Name: step.name, Digest: v1alpha1.OpaqueDigest(step.name)}
		if err := step.do(r); err != nil {
			t.Fatal(err)
		}
		h, err := u.Verify(t.Context(), nodeagent.Attempt{Revision: r})
		if err != nil || h.Verdict != step.want || runs() != r {
			t.Errorf("with %s: %+v, %v, and it runs %v; want %s", step.name, h, err, runs(), step.want)
		}
	}
	d, err := u.(nodeagent.Disrupter).Disruption(t.Context(), protocol.Revision{}, protocol.Revision{Name: "v1"})
	if err != nil || d != nodeagent.DisruptionNone {
		t.Errorf("disruption %q, %v; want None", d, err)
	}
}

// The objects of the trial can be followed, and the page names the revisions by the digests that they have.
func TestObjectsOfTheTrial(t *testing.T) {
	page := read(t, "../../../../docs/getting-started.md")
	revisions := map[string]*v1alpha1.Revision{}
	for document := range strings.SplitSeq(read(t, trial+"revisions.yaml"), "\n---\n") {
		var r v1alpha1.Revision
		if err := yaml.UnmarshalStrict([]byte(document), &r); err != nil {
			t.Fatal(err)
		}
		if err := r.Spec.Check(); err != nil || r.Spec.Class != "NonIntrusive" {
			t.Errorf("revision %s: %v, class %q; want its own digest, and NonIntrusive", r.Name, err, r.Spec.Class)
		}
		revisions[r.Name] = &r
	}
	for _, name := range []string{"v2", "fatal"} {
		if r := revisions[name]; r == nil || !strings.Contains(page, `{"name": "`+name+`", "digest": "`+r.Spec.Digest+`"}`) {
			t.Errorf("the page does not name %s by its digest", name)
		}
	}
	var r v1alpha1.Rollout
	if err := yaml.UnmarshalStrict([]byte(read(t, trial+"rollout.yaml")), &r); err != nil {
		t.Fatal(err)
	}
	r.UID = "0c7b" // as the API server gives one
	p, err := v1alpha1.PolicyOf(&r, func(name string) (*v1alpha1.Revision, bool) { return revisions[name], revisions[name] != nil })
	if err != nil || p.Target.Name != "v1" || len(p.Stages) != 2 || !p.Stages[0].Approval {
		t.Errorf("the rollout is %+v, %v; want one to v1, with a stage that somebody has to approve", p, err)
	}
}
