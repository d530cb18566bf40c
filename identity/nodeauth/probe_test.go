// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/identity/nodeauth"
)

// probes are all that an agent can send, with another node's objects in place.
func (c *cluster) probes(t *testing.T, a *agent, other string) map[string]nodeauth.Probe {
	t.Helper()
	typed, objects := clients(t, c.config(a.token))
	probe := func(try func(context.Context) error) nodeauth.Probe {
		return nodeauth.Probe{Policy: c.options.Name, Try: try}
	}
	return map[string]nodeauth.Probe{
		"lease":  probe(nodeauth.TryLease(typed.CoordinationV1().Leases(c.namespace), "agent-nobody")),
		"status": probe(nodeauth.TryPatch(objects.Resource(shadows), other, "status")),
		"node":   probe(nodeauth.TryPatch(typed.CoreV1().Nodes(), other, "status")),
	}
}

// settle waits until every probe has the result. Until the API server has seen a change of the policy they may have the one before.
func settle(t *testing.T, probes map[string]nodeauth.Probe, want error) {
	t.Helper()
	eventually(t, func() string {
		for name, p := range probes {
			if err := p.Once(t.Context()); !errors.Is(err, want) {
				return name + ": got " + errorText(err) + ", want " + errorText(want)
			}
		}
		return ""
	})
}

// TestProbeNoticesAMissingGuard covers R-AU-10: no policy, one that is aimed at another account, one that is not bound, and one that only warns.
func TestProbeNoticesAMissingGuard(t *testing.T) {
	c := newCluster(t)
	a, b := c.agent(t, "a"), c.node(t, "b")
	c.has(t, b)
	probes := c.probes(t, a, b.Name)
	settle(t, probes, nodeauth.ErrUnguarded) // nothing is installed

	misaimed := c.options
	misaimed.ServiceAccount.Name = "agnet"
	objects, err := nodeauth.Objects(misaimed)
	must(t, err)
	c.create(t, objects[:2]...)
	c.bites(t, "agnet", probes)

	right, err := nodeauth.Objects(c.options)
	must(t, err)
	policy := untyped(t, right[0])
	_, err = c.api(policy).Apply(t.Context(), policy.GetName(), policy, metav1.ApplyOptions{FieldManager: "test", Force: true})
	must(t, err)
	settle(t, probes, nil)

	binding := untyped(t, right[1])
	must(t, c.api(binding).Delete(t.Context(), binding.GetName(), metav1.DeleteOptions{}))
	settle(t, probes, nodeauth.ErrUnguarded)

	audit := right[1].DeepCopyObject().(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
	audit.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn, admissionregistrationv1.Audit}
	c.create(t, audit)
	heeded := &warnings{}
	config := c.config(a.token)
	config.WarningHandler = heeded
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	eventually(t, func() string {
		_, err := client.Resource(leases).Namespace(c.namespace).Create(t.Context(), lease("agent-nobody"), dryCreate)
		must(t, err)
		if !heeded.have("ValidatingAdmissionPolicy '" + c.options.Name + "'") {
			return "the binding that warns is not there yet"
		}
		return ""
	})
	settle(t, probes, nodeauth.ErrUnguarded)
}

// bites waits until the policy for another account is at work, and wants every probe of ours to find no guard then.
func (c *cluster) bites(t *testing.T, account string, probes map[string]nodeauth.Probe) {
	t.Helper()
	c.account(t, account)
	stranger := c.client(t, c.token(t, account, nil))
	eventually(t, func() string {
		_, err := stranger.Resource(leases).Namespace(c.namespace).Create(t.Context(), lease("agent-nobody"), dryCreate)
		return c.denial(err, "")
	})
	for name, p := range probes {
		if err := p.Once(t.Context()); !errors.Is(err, nodeauth.ErrUnguarded) {
			t.Errorf("%s: got %v, want %v", name, err, nodeauth.ErrUnguarded)
		}
	}
}

// TestProbeOfANarrowAgent covers R-AU-10: with nothing but the generated roles the probes find the guard. Nothing is known where the role lacks
// the right, or the object does not exist, or another policy is asked after: RBAC's refusal is not taken for the policy's.
func TestProbeOfANarrowAgent(t *testing.T) {
	c := newCluster(t)
	b := c.node(t, "b")
	c.has(t, b)
	c.narrow(t)
	a := c.agentOf(t, "narrow", c.node(t, "a"))
	settle(t, c.probes(t, a, b.Name), nil)

	typed, objects := clients(t, c.config(a.token))
	for name, row := range map[string]struct {
		probe nodeauth.Probe
		is    func(error) bool
	}{
		"no right to write":  {nodeauth.Probe{Policy: c.options.Name, Try: nodeauth.TryPatch(objects.Resource(shadows), b.Name)}, apierrors.IsForbidden},
		"another namespace":  {nodeauth.Probe{Policy: c.options.Name, Try: nodeauth.TryLease(typed.CoordinationV1().Leases("default"), "nobody")}, apierrors.IsForbidden},
		"no such object":     {nodeauth.Probe{Policy: c.options.Name, Try: nodeauth.TryPatch(objects.Resource(shadows), "nobody", "status")}, apierrors.IsNotFound},
		"a policy elsewhere": {nodeauth.Probe{Policy: c.options.Name + "-x", Try: nodeauth.TryLease(typed.CoordinationV1().Leases(c.namespace), "nobody")}, apierrors.IsForbidden},
	} {
		if err := row.probe.Once(t.Context()); err == nil || errors.Is(err, nodeauth.ErrUnguarded) || !row.is(err) {
			t.Errorf("%s: got %v, want an error that says that nothing is known", name, err)
		}
	}
	if err := nodeauth.TryPatch(objects.Resource(shadows), b.Name, "status")(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want the attempt alone to be refused too", err)
	}
}

// TestProbeLeavesNothingBehind covers R-AU-10: an unguarded agent's probe is a dry run.
func TestProbeLeavesNothingBehind(t *testing.T) {
	c := newCluster(t)
	a, b := c.agent(t, "a"), c.node(t, "b")
	c.has(t, b)
	before, err := c.objects.Resource(shadows).Get(t.Context(), b.Name, metav1.GetOptions{})
	must(t, err)
	for _, p := range c.probes(t, a, b.Name) {
		if err := p.Once(t.Context()); !errors.Is(err, nodeauth.ErrUnguarded) {
			t.Errorf("got %v, want %v", err, nodeauth.ErrUnguarded)
		}
	}
	after, err := c.objects.Resource(shadows).Get(t.Context(), b.Name, metav1.GetOptions{})
	must(t, err)
	if before.GetResourceVersion() != after.GetResourceVersion() {
		t.Error("the object of the other node was written")
	}
	if _, err := c.admin.CoordinationV1().Leases(c.namespace).Get(t.Context(), "agent-nobody", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want no Lease", err)
	}
}

// TestProbeOfATakenName covers R-AU-10: somebody who is not held to his node made the object that no node gives its name. It hides nothing: admission
// comes before the storage, which alone knows of it.
func TestProbeOfATakenName(t *testing.T) {
	c := newCluster(t)
	a, b := c.agent(t, "a"), c.node(t, "b")
	c.has(t, b)
	taken := lease("agent-nobody")
	taken.SetNamespace(c.namespace)
	c.create(t, taken)
	probes := c.probes(t, a, b.Name)
	if err := probes["lease"].Once(t.Context()); !errors.Is(err, nodeauth.ErrUnguarded) || !apierrors.IsAlreadyExists(err) {
		t.Errorf("got %v, want %v as the name is taken", err, nodeauth.ErrUnguarded)
	}
	c.install(t)
	settle(t, probes, nil)
}

// denied is the answer of an API server to a write that is denied with a cause.
func denied(code int32, causes ...string) error {
	s := metav1.Status{Code: code, Reason: metav1.StatusReasonForbidden, Message: strings.Join(causes, " "), Details: &metav1.StatusDetails{}}
	for _, c := range causes {
		s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{Message: c})
	}
	return &apierrors.StatusError{ErrStatus: s}
}

// TestProbeKnowsThePolicysWord covers R-AU-10: which answers are the policy's.
func TestProbeKnowsThePolicysWord(t *testing.T) {
	const by = "ValidatingAdmissionPolicy 'guard' with binding 'guard' denied request: "
	for name, row := range map[string]struct {
		answer             error
		guarded, unguarded bool
	}{
		"accepted":                         {nil, false, true},
		"the policy":                       {denied(403, by+"no"), true, false},
		"the policy, with a broken rule":   {denied(422, by+"expression 'x' resulted in error: y"), true, false},
		"the policy without its binding":   {denied(403, "ValidatingAdmissionPolicy 'guard' denied request: no"), true, false},
		"another policy":                   {denied(403, "ValidatingAdmissionPolicy 'guards' with binding 'guard' denied request: no"), false, false},
		"another policy that speaks of it": {denied(403, "ValidatingAdmissionPolicy 'x' with binding 'x' denied request: "+by), false, false},
		"a webhook that speaks of it":      {denied(403, "admission webhook \"x\" denied the request: "+by), false, false},
		"RBAC":                             {apierrors.NewForbidden(corev1.Resource("leases"), by, errors.New(by)), false, false},
		"RBAC without details":             {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Message: by}}, false, false},
		"not an answer of the API server":  {errors.New(by), false, false},
		"the server is away":               {context.DeadlineExceeded, false, false},
		"the server has no time":           {apierrors.NewTooManyRequests("busy", 1), false, false},
		"the object is there already":      {apierrors.NewAlreadyExists(corev1.Resource("leases"), "x"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := nodeauth.Probe{Policy: "guard", Try: func(context.Context) error { return row.answer }}.Once(t.Context())
			if (err == nil) != row.guarded || errors.Is(err, nodeauth.ErrUnguarded) != row.unguarded {
				t.Errorf("got %v, want guarded: %t, unguarded: %t", err, row.guarded, row.unguarded)
			}
			if err != nil && row.answer != nil && !errors.Is(err, row.answer) {
				t.Errorf("got %v, want it to wrap the answer", err)
			}
		})
	}
}

// TestProbeRuns covers R-AU-10: at once, then each hour or a little later, after a failure within seconds, and until the guard is found missing.
func TestProbeRuns(t *testing.T) {
	for name, every := range map[string]time.Duration{"none": 0, "an hour": time.Hour, "less than nothing": -time.Minute} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { probesHourly(t, every) }) })
	}
}

// probesHourly runs a probe that gets an answer, none, an answer, and none of the policy.
func probesHourly(t *testing.T, every time.Duration) {
	t.Helper()
	answers := []error{denied(403, "ValidatingAdmissionPolicy 'guard' denied request: no"), errors.New("away"), denied(403, "ValidatingAdmissionPolicy 'guard' denied request: no"), nil}
	var at []time.Duration
	var said []error
	start := time.Now()
	p := nodeauth.Probe{
		Policy: "guard", Every: every,
		Try: func(ctx context.Context) error {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != 5*time.Second {
				t.Errorf("got the deadline %s, want 5 s from now", deadline)
			}
			at = append(at, time.Since(start))
			return answers[len(at)-1]
		},
		Report: func(err error) { said = append(said, err) },
	}
	if err := p.Run(t.Context(), nil); !errors.Is(err, nodeauth.ErrUnguarded) {
		t.Errorf("got %v, want %v", err, nodeauth.ErrUnguarded)
	}
	bounds := []struct{ least, most time.Duration }{{0, 0}, {time.Hour, 66 * time.Minute}, {time.Second, 1100 * time.Millisecond}, {time.Hour, 66 * time.Minute}}
	if len(at) != len(bounds) || len(said) != len(bounds) {
		t.Fatalf("got %d probes and %d reports, want %d", len(at), len(said), len(bounds))
	}
	for i, b := range bounds {
		if wait := at[i] - at[max(i-1, 0)]; wait < b.least || wait > b.most {
			t.Errorf("probe %d comes after %s, want %s to %s", i, wait, b.least, b.most)
		}
	}
	if said[0] != nil || said[1] == nil || said[2] != nil || !errors.Is(said[3], nodeauth.ErrUnguarded) {
		t.Errorf("got the reports %v", said)
	}
}

// TestProbeEndsWithItsContext: while it waits, and while the server keeps it waiting.
func TestProbeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, try := range []func(ctx context.Context) error{
			func(context.Context) error {
				return denied(403, "ValidatingAdmissionPolicy 'guard' denied request: no")
			},
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			p := nodeauth.Probe{Policy: "guard", Try: try, Every: time.Minute, Timeout: time.Minute, Report: func(err error) {
				if err != nil {
					t.Errorf("got the report %v", err)
				}
			}}
			if err := p.Run(ctx, nil); err != nil {
				t.Errorf("got %v, want nil when the context ends", err)
			}
			cancel()
		}
	})
}

// warnings notes those of the server.
type warnings struct{ all []string }

func (w *warnings) HandleWarningHeader(code int, _ string, text string) {
	if code == 299 {
		w.all = append(w.all, text)
	}
}

func (w *warnings) have(text string) bool {
	return slices.ContainsFunc(w.all, func(s string) bool { return strings.Contains(s, text) })
}
