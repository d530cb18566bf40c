// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/identity/nodeauth"
)

const secret = "the.very.token"

// answers are what an API server says, in memory. Each may be an error instead.
type answers struct {
	t       *testing.T
	review  authenticationv1.TokenReviewStatus
	pod     corev1.Pod
	node    corev1.Node
	failing map[string]error // by request: review, pod, node
	asked   []string
	timeout time.Duration
}

func (a *answers) take(ctx context.Context, request string) error {
	a.t.Helper()
	if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > a.timeout {
		a.t.Errorf("the %s is asked for with the deadline %s, want one in %s", request, deadline, a.timeout)
	}
	a.asked = append(a.asked, request)
	return a.failing[request]
}

type reviews struct{ *answers }

func (r reviews) Create(ctx context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	if review.Spec.Token != secret || strings.Join(review.Spec.Audiences, " ") != "belay-api" {
		r.t.Errorf("got the question %+v", review.Spec)
	}
	return &authenticationv1.TokenReview{Status: r.review}, r.take(ctx, "review")
}

type pods struct{ *answers }

func (p pods) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Pod, error) {
	if name != "agent-1" {
		p.t.Errorf("got the question for the pod %q", name)
	}
	return &p.pod, p.take(ctx, "pod")
}

type nodeGetter struct{ *answers }

func (n nodeGetter) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Node, error) {
	if name != "n1" {
		n.t.Errorf("got the question for the node %q", name)
	}
	return &n.node, n.take(ctx, "node")
}

// rightful are the answers for an agent on its own node.
func rightful(t *testing.T) *answers {
	return &answers{
		t: t, timeout: 5 * time.Second, failing: map[string]error{},
		review: authenticationv1.TokenReviewStatus{
			Authenticated: true, Audiences: []string{"belay-api"},
			User: authenticationv1.UserInfo{Username: "system:serviceaccount:belay:agent", Extra: map[string]authenticationv1.ExtraValue{
				"authentication.kubernetes.io/pod-name": {"agent-1"}, "authentication.kubernetes.io/pod-uid": {"p1"},
				"authentication.kubernetes.io/node-name": {"n1"}, "authentication.kubernetes.io/node-uid": {"u1"},
			}},
		},
		pod: corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "belay", Name: "agent-1", UID: "p1"},
			Spec:       corev1.PodSpec{NodeName: "n1", ServiceAccountName: "agent"},
		},
		node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}},
	}
}

func (a *answers) verifier() *nodeauth.Verifier {
	return &nodeauth.Verifier{
		Tokens: reviews{a}, Pods: pods{a}, Nodes: nodeGetter{a}, Audience: "belay-api",
		ServiceAccount: types.NamespacedName{Namespace: "belay", Name: "agent"},
	}
}

// claim gives the token other values of a claim.
func claim(name string, values ...string) func(*answers) {
	return func(a *answers) { a.review.User.Extra["authentication.kubernetes.io/"+name] = values }
}

// TestVerifierWantsEveryFact covers R-AU-04, R-AU-06 and R-RO-06 (another node, another UID, another audience, a pod that is gone or has
// moved): one fact after the other is missing, everything else is right.
func TestVerifierWantsEveryFact(t *testing.T) {
	if _, err := rightful(t).verifier().Verify(t.Context(), secret, "n1"); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name   string
		change func(a *answers)
		fact   nodeauth.Fact
		says   string
	}{
		{"not authenticated", func(a *answers) { a.review.Authenticated = false }, nodeauth.Authenticated, ""},
		{"authenticated with an error", func(a *answers) { a.review.Error = "broken" }, nodeauth.Authenticated, `the API server says "broken"`},
		{"no audience", func(a *answers) { a.review.Audiences = nil }, nodeauth.ForAudience, `want "belay-api"`},
		{"another audience", func(a *answers) { a.review.Audiences = []string{"belay-api2"} }, nodeauth.ForAudience, `["belay-api2"]`},
		{"another account", func(a *answers) { a.review.User.Username = "system:serviceaccount:belay:agent2" }, nodeauth.FromServiceAccount, `agent2`},
		{"another namespace", func(a *answers) { a.review.User.Username = "system:serviceaccount:other:agent" }, nodeauth.FromServiceAccount, `want "system:serviceaccount:belay:agent"`},
		{"a user", func(a *answers) { a.review.User.Username = "agent" }, nodeauth.FromServiceAccount, ""},
		{"no pod", claim("pod-name"), nodeauth.BoundToPod, "want one"},
		{"no pod UID", claim("pod-uid"), nodeauth.BoundToPod, "want one"},
		{"two pods", claim("pod-name", "agent-1", "agent-2"), nodeauth.BoundToPod, `["agent-1" "agent-2"]`},
		{"two pod UIDs", claim("pod-uid", "p1", "p2"), nodeauth.BoundToPod, ""},
		{"no claims", func(a *answers) { a.review.User.Extra = nil }, nodeauth.BoundToPod, ""},
		{"no node", claim("node-name"), nodeauth.OnNode, `the one "n1"`},
		{"another node", claim("node-name", "n2"), nodeauth.OnNode, `["n2"]`},
		{"two nodes", claim("node-name", "n1", "n2"), nodeauth.OnNode, ""},
		{"no node UID", claim("node-uid"), nodeauth.OnNode, ""},
		{"the pod is gone", func(a *answers) { a.failing["pod"] = apierrors.NewNotFound(corev1.Resource("pods"), "agent-1") }, nodeauth.PodLive, `there is no pod "belay/agent-1"`},
		{"the pod was made again", func(a *answers) { a.pod.UID = "p2" }, nodeauth.PodLive, `has the UID "p2", want "p1"`},
		{"the pod is deleted", func(a *answers) { a.pod.DeletionTimestamp = ptr.To(metav1.Now()) }, nodeauth.PodLive, "is ending"},
		{"the pod has ended", func(a *answers) { a.pod.Status.Phase = corev1.PodSucceeded }, nodeauth.PodLive, "Succeeded"},
		{"the pod has failed", func(a *answers) { a.pod.Status.Phase = corev1.PodFailed }, nodeauth.PodLive, "Failed"},
		{"the pod of another namespace", func(a *answers) { a.pod.Namespace = "other" }, nodeauth.PodLive, `is "other/agent-1"`},
		{"the pod is of another account", func(a *answers) { a.pod.Spec.ServiceAccountName = "x" }, nodeauth.FromServiceAccount, `has the service account "x"`},
		{"the pod is on another node", func(a *answers) { a.pod.Spec.NodeName = "n2" }, nodeauth.OnNode, `is on the node "n2"`},
		{"the pod is on no node", func(a *answers) { a.pod.Spec.NodeName = "" }, nodeauth.OnNode, ""},
		{"the node is gone", func(a *answers) { a.failing["node"] = apierrors.NewNotFound(corev1.Resource("nodes"), "n1") }, nodeauth.NodeLive, `there is no node "n1"`},
		{"the node was made again", func(a *answers) { a.node.UID = "u2" }, nodeauth.NodeLive, `has the UID "u2", want "n1" with "u1"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := rightful(t)
			row.change(a)
			got, err := a.verifier().Verify(t.Context(), secret, "n1")
			var refusal *nodeauth.RefusedError
			if !errors.As(err, &refusal) || !errors.Is(err, nodeauth.ErrRefused) || refusal.Fact != row.fact || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want a refusal for %s that says %q", err, row.fact, row.says)
			}
			if got != (nodeauth.Caller{}) {
				t.Errorf("got the caller %+v beside an error", got)
			}
		})
	}
}

// TestVerifierTellsWhoCalls covers R-AU-04: three questions with a deadline each, and what they say.
func TestVerifierTellsWhoCalls(t *testing.T) {
	a := rightful(t)
	v := a.verifier()
	v.Timeout, a.timeout = time.Second, time.Second
	got, err := v.Verify(t.Context(), secret, "n1")
	want := nodeauth.Caller{Node: "n1", NodeUID: "u1", Pod: types.NamespacedName{Namespace: "belay", Name: "agent-1"}, PodUID: "p1"}
	if err != nil || got != want || strings.Join(a.asked, " ") != "review pod node" {
		t.Errorf("got %+v, %v after %q, want %+v", got, err, a.asked, want)
	}
}

// TestVerifierTellsDoubtFromRefusal covers R-AU-06: what the API server does not answer is no refusal, and is no yes either.
func TestVerifierTellsDoubtFromRefusal(t *testing.T) {
	for _, request := range []string{"review", "pod", "node"} {
		for _, cause := range []error{
			context.DeadlineExceeded, apierrors.NewInternalError(errors.New("broken")), apierrors.NewForbidden(corev1.Resource("x"), "y", errors.New("no right")),
		} {
			a := rightful(t)
			a.failing[request] = cause
			got, err := a.verifier().Verify(t.Context(), secret, "n1")
			if !errors.Is(err, cause) || errors.Is(err, nodeauth.ErrRefused) || got != (nodeauth.Caller{}) {
				t.Errorf("%s: got %+v, %v, want an error that wraps %v and is no refusal", request, got, err, cause)
			}
		}
	}
	a := rightful(t)
	a.failing["review"] = apierrors.NewNotFound(corev1.Resource("tokenreviews"), "")
	if _, err := a.verifier().Verify(t.Context(), secret, "n1"); err == nil || errors.Is(err, nodeauth.ErrRefused) {
		t.Errorf("got %v, want an error where the API server has no TokenReview", err)
	}
}

// TestVerifierNeedsItsSettings: without them it accepts nobody, and asks nothing.
func TestVerifierNeedsItsSettings(t *testing.T) {
	for name, change := range map[string]func(v *nodeauth.Verifier, token, node *string){
		"audience":  func(v *nodeauth.Verifier, _, _ *string) { v.Audience = "" },
		"account":   func(v *nodeauth.Verifier, _, _ *string) { v.ServiceAccount.Name = "" },
		"namespace": func(v *nodeauth.Verifier, _, _ *string) { v.ServiceAccount.Namespace = "" },
		"token":     func(_ *nodeauth.Verifier, token, _ *string) { *token = "" },
		"node":      func(_ *nodeauth.Verifier, _, node *string) { *node = "" },
	} {
		a, token, node := rightful(t), secret, "n1"
		v := a.verifier()
		change(v, &token, &node)
		if _, err := v.Verify(t.Context(), token, node); err == nil || len(a.asked) > 0 {
			t.Errorf("without %s: got %v after %q, want an error before any question", name, err, a.asked)
		}
	}
}

// TestTokensStaySecret covers R-AU-03: no error holds the token, whatever a server puts into its answers.
func TestTokensStaySecret(t *testing.T) {
	for name, change := range map[string]func(a *answers){
		"in the review":    func(a *answers) { a.review.Authenticated, a.review.Error = false, "bad token "+secret },
		"in the user":      func(a *answers) { a.review.User.Username = secret },
		"in a failure":     func(a *answers) { a.failing["review"] = fmt.Errorf("posting %s", secret) },
		"in another claim": claim("node-name", secret),
		"in a pod failure": func(a *answers) { a.failing["pod"] = fmt.Errorf("getting %s", secret) },
	} {
		t.Run(name, func(t *testing.T) {
			a := rightful(t)
			change(a)
			_, err := a.verifier().Verify(t.Context(), secret, "n1")
			if err == nil {
				t.Fatal("got no error")
			}
			for ; err != nil; err = errors.Unwrap(err) {
				if strings.Contains(err.Error(), secret) || strings.Contains(fmt.Sprintf("%+v", err), secret) {
					t.Errorf("got %q, want it without the token", err)
				}
			}
		})
	}
}

// TestVerifierOnTheServer covers R-AU-02, R-AU-04, R-AU-05, R-AU-07 and R-RO-06: with real tokens, in two replicas that know nothing of each other.
func TestVerifierOnTheServer(t *testing.T) {
	c := newCluster(t)
	other := &cluster{env: c.env, admin: c.admin, objects: c.objects, namespace: c.env.Namespace(t)}
	other.account(t, agents)
	c.account(t, "somebody")
	const audience = "belay-api"
	a, b := c.agent(t, "a"), c.node(t, "b")
	somebody := c.pod(t, "somebody", "somebody", a.node.Name)
	namesake := other.pod(t, agents, a.pod.Name, a.node.Name)
	node := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: a.node.Name, UID: a.node.UID}
	replicas := []*nodeauth.Verifier{c.verifier(t, audience), c.verifier(t, audience)}
	expect := func(what, token, node string, facts ...nodeauth.Fact) {
		t.Helper()
		for _, v := range replicas {
			c.verdict(t, v, what, token, node, facts...)
		}
	}
	good := c.token(t, agents, bound(a.pod), audience)
	expect("the agent", good, a.node.Name)
	expect("the agent for another node", good, b.Name, nodeauth.OnNode)
	expect("for another audience", a.token, a.node.Name, nodeauth.Authenticated)
	expect("of a pod with the same name elsewhere", other.token(t, agents, bound(namesake), audience), a.node.Name, nodeauth.FromServiceAccount)
	expect("of another account on the node", c.token(t, "somebody", bound(somebody), audience), a.node.Name, nodeauth.FromServiceAccount)
	expect("unbound", c.token(t, agents, nil, audience), a.node.Name, nodeauth.BoundToPod)
	expect("bound to the Node", c.token(t, agents, node, audience), a.node.Name, nodeauth.BoundToPod)
	expect("from a Secret", c.secretToken(t), a.node.Name, nodeauth.Authenticated)
	expect("expired", c.shifted(t, good, -time.Hour), a.node.Name, nodeauth.Authenticated)
	expect("tampered with", good[:len(good)-4]+"AAAA", a.node.Name, nodeauth.Authenticated)
	again := c.remade(t, a.node)
	expect("of a pod of the node before", good, again.Name, nodeauth.NodeLive)
	fresh := c.token(t, agents, bound(a.pod), audience)
	expect("with the new node", fresh, again.Name)

	api := c.admin.CoreV1().Pods(c.namespace)
	must(t, api.Delete(t.Context(), a.pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
	expect("of a pod that is gone", fresh, again.Name, nodeauth.PodLive, nodeauth.Authenticated)
	c.pod(t, agents, a.pod.Name, again.Name)
	expect("of a pod that was made again", fresh, again.Name, nodeauth.PodLive, nodeauth.Authenticated)
}

func (c *cluster) verifier(t *testing.T, audience string) *nodeauth.Verifier {
	t.Helper()
	typed, _ := clients(t, c.env.Config())
	return &nodeauth.Verifier{
		Tokens: typed.AuthenticationV1().TokenReviews(), Pods: typed.CoreV1().Pods(c.namespace), Nodes: typed.CoreV1().Nodes(),
		Audience: audience, ServiceAccount: types.NamespacedName{Namespace: c.namespace, Name: agents},
	}
}

// verdict asks for a token, and wants it accepted where there are no facts, else refused for one of them.
func (c *cluster) verdict(t *testing.T, v *nodeauth.Verifier, what, token, node string, facts ...nodeauth.Fact) {
	t.Helper()
	got, err := v.Verify(t.Context(), token, node)
	var refusal *nodeauth.RefusedError
	switch {
	case len(facts) == 0 && (err != nil || got.Node != node):
		t.Errorf("%s: got %+v, %v, want it accepted", what, got, err)
	case len(facts) > 0 && (!errors.As(err, &refusal) || !strings.Contains(fmt.Sprint(facts), string(refusal.Fact))):
		t.Errorf("%s: got %v, want it refused for one of %q", what, err, facts)
	}
}
