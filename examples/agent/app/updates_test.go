// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/examples/internal/agent/update"
	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/identity/nodeauth"
	"github.com/belayproject/belay/rollout/kube"
)

// takesPart is what an agent writes when it begins to follow orders.
const takesPart = "Takes part in rollouts"

// guarded waits until the API server obeys the policy, which takes it a second.
func (h *hooked) guarded() {
	h.t.Helper()
	client, err := kubernetes.NewForConfig(h.own)
	must(h.t, err)
	probe := nodeauth.Probe{Policy: agentName, Try: nodeauth.TryLease(client.CoordinationV1().Leases(agents), update.ProbedLease)}
	e2e.Eventually(h.t, soon, "the policy is obeyed", func() error { return probe.Once(h.t.Context()) })
}

// holds waits until the agent of that process takes part.
func (h *hooked) holds(p *e2e.Process) {
	h.t.Helper()
	e2e.Eventually(h.t, soon, "the agent of "+h.name+" takes part", func() error {
		if err := p.Running(); err != nil {
			return errors.Join(e2e.ErrHopeless, err)
		}
		return p.Logged(takesPart, 1)
	})
}

// R-RO-01, R-RO-06, R-RO-23: agents with hooks go through a rollout that the reference controller carries out, each with the token of its own pod and the rights of the
// manifests, and no request of theirs is denied. One node boots in the middle: its agent is killed while the boot is under way, and what is up then
// goes on where it was.
func TestHooksInARolloutWithABoot(t *testing.T) {
	t.Parallel()
	s := newStage(t, "agent/rbac.yaml", "agent/guard.yaml")
	plain, booting := s.node("plain", "Drain"), s.node("booting", "Reboot")
	plain.guarded()
	first, before := plain.agent("state"), booting.agent("state")
	plain.holds(first)
	booting.holds(before)
	s.control()
	must(t, s.Begin(t.Context(), "v2", nil))

	booting.saysThatItBoots()
	before.Kill()
	booting.reboot()
	after := booting.agent("state")

	e2e.Eventually(t, patience, "the rollout completes", func() error { return s.Completed(t.Context(), "v2") })
	plain.runs("v2")
	booting.runs("v2")
	if sh, _, err := booting.shadow().Read(t.Context()); err != nil || sh.Status.BootID != "boot-2" || sh.Status.Report.Phase != "Done" {
		t.Errorf("the shadow says %+v (%v), want Done in boot-2", sh.Status, err)
	}
	for h, p := range map[*hooked]*e2e.Process{plain: first, booting: after} {
		if code := p.Stop(t); code != 0 {
			t.Errorf("asked to stop, the agent of %s exits with %d, want 0", h.name, code)
		}
		if _, err := s.Core.CoordinationV1().Leases(agents).Get(t.Context(), h.name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the Lease of %s is still there (%v), want it given back", h.name, err)
		}
	}
	if seen := s.Truth.Report(); len(seen.Wrong) > 0 {
		t.Errorf("what may never be was seen: %q", seen.Wrong)
	}
	s.deniedNothing()
}

// shadow is the node's, as it is stored.
func (h *hooked) shadow() kube.AgentShadow {
	h.t.Helper()
	return shadowOf(h.t, h.Client, h.name)
}

// shadowOf is the shadow of a node, as it is stored.
func shadowOf(t *testing.T, client dynamic.Interface, node string) kube.AgentShadow {
	t.Helper()
	shadows, err := kube.NewShadows(client)
	must(t, err)
	shadow, err := kube.NewAgentShadow(shadows, node, nil)
	must(t, err)
	return shadow
}

// saysThatItBoots waits until the node is about to boot, and its shadow says so.
func (h *hooked) saysThatItBoots() {
	h.t.Helper()
	e2e.Eventually(h.t, patience, "the node boots", func() error {
		_, err := os.Stat(filepath.Join(h.dir, "node", "rebooting"))
		return err
	})
	e2e.Eventually(h.t, soon, "the shadow says that it boots", func() error {
		sh, _, err := h.shadow().Read(h.t.Context())
		if err == nil && (sh.Status.Report.Phase != "Applying" || sh.Status.Reason != "Rebooting" || sh.Status.BootID != "boot-1") {
			err = fmt.Errorf("it says %+v", sh.Status)
		}
		return err
	})
}

// R-RO-01: a node that comes up from a boot without an API server goes on with what it had begun: it is verified from the record on the disk alone, before
// there is a Lease, a guard or a shadow, and the rollout completes when the server is back.
func TestABootWithoutTheServer(t *testing.T) {
	t.Parallel()
	s := newStage(t, "agent/rbac.yaml", "agent/guard.yaml")
	h := s.node("alone", "Reboot")
	h.guarded()
	before := h.agent("state")
	h.holds(before)
	s.control()
	must(t, s.Begin(t.Context(), "v2", nil))
	h.saysThatItBoots()
	must(t, s.Env.APIServer().Kill())
	before.Kill()
	h.reboot()
	after := h.agent("state")
	e2e.Eventually(t, soon, "the node is found healthy while the server is away", func() error { return after.Logged(`event="Verified"`, 1) })
	// Healthy time lies between two looks. How many more there are depends on how long each takes.
	if n := strings.Count(h.read("verified"), "v2\n"); n < 2 {
		t.Errorf("it was looked at %d times, want 2 at least", n)
	}
	must(t, s.Env.APIServer().Start(t.Context()))
	e2e.Eventually(t, patience, "the rollout completes", func() error { return s.Completed(t.Context(), "v2") })
	h.runs("v2")
	if err := after.Running(); err != nil {
		t.Errorf("the agent has ended: %v", err)
	}
}

// deniedNothing looks through the audit log of the agents. The probes of the guard are meant to be denied.
func (s *stage) deniedNothing() {
	s.t.Helper()
	text, err := os.ReadFile(s.Env.AuditLog())
	must(s.t, err)
	requests, probes := 0, 0
	for line := range strings.Lines(string(text)) {
		requests++
		switch {
		case !strings.Contains(line, `"code":403`):
		case strings.Contains(line, "dryRun"):
			probes++
		default:
			s.t.Errorf("the manifests give too few rights: %s", line)
		}
	}
	if requests < 20 || probes == 0 {
		s.t.Errorf("the audit log has %d requests of agents and %d probes: nothing is shown", requests, probes)
	}
}

// R-ID-01, R-AU-10: without the guard an agent does not begin. With it, a second agent of a node, on another disk, is told who the first is and
// does nothing; when the first was killed, a later one takes its place.
func TestSecondAgentOfANodeIsTold(t *testing.T) {
	t.Parallel()
	s := newStage(t, "agent/rbac.yaml")
	h := s.node("twice", "Drain")
	ends := func(p *e2e.Process, want string) {
		t.Helper()
		if code := p.Exit(t, soon); code != 1 || !strings.Contains(p.Log(), want) {
			t.Errorf("the agent exits with %d and wrote %q, want 1 and %q", code, p.Log(), want)
		}
		if strings.Contains(p.Log(), takesPart) {
			t.Errorf("the agent took part all the same: %q", p.Log())
		}
	}
	ends(h.agent("state"), nodeauth.ErrUnguarded.Error())
	e2e.Apply(t, s.Env.Config(), "../../manifests/agent/guard.yaml")
	h.guarded()

	first := h.agent("state")
	h.holds(first)
	ends(h.agent("state"), "the store is in use by process")
	ends(h.agent("other"), "is in use by another living process")
	if err := first.Running(); err != nil {
		t.Errorf("the first agent has ended because of the second: %v", err)
	}
	first.Kill()
	h.holds(h.agent("other"))
}

// Whatever is wrong about hooks is said before anything is opened.
func TestUpdateRefusesWrongFlags(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "observ"), []byte("#!/bin/sh\n"), 0o700))
	c := NewCommand()
	c.SetArgs([]string{"update", "--hooks=" + dir, "--state-dir=state", "--kubeconfig=/absent", "--guard-policy=g", "--lease-duration=1s", "--verify-within=1s"})
	err := c.ExecuteContext(t.Context())
	for _, want := range []string{
		"it has no program named observe", `program "observ" is no hook: must be named observe`, `--state-dir="state": must be an absolute path`,
		`--node-name="": must be the name of this node`, `--kubeconfig="/absent": must be a file`, `--guard-policy="g": must be empty without --lease-namespace`,
		`--lease-duration="1s": must be at least 5s`, `--verify-within="1s": must be more than --verify-for, which is 1m0s`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}
