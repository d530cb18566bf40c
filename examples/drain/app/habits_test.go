// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/examples/internal/e2e"
)

// awayTime is far below the 30 s for which a first look may wait, and far above what a busy machine needs to start a
// process.
const awayTime = 10 * time.Second

// An API server that is away ends each command at once, with the cause.
func TestServerThatIsAwayIsNamedAtOnce(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "https://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.StartTLS()
	defer stranger.Close()
	answer := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	gateway := httptest.NewServer(answer(http.StatusBadGateway))
	defer gateway.Close()
	locked := httptest.NewServer(answer(http.StatusUnauthorized))
	defer locked.Close()
	for _, c := range []struct{ server, want string }{
		{refused, "connection refused"},
		{"https://api.nowhere.invalid", "no such host"},
		{stranger.URL, "x509"},
		{gateway.URL, "502 Bad Gateway"},
		{locked.URL, "Unauthorized"},
	} {
		for _, command := range []string{"n1", "plan n1", "cordon n1", "release n1"} {
			if command == "cordon n1" && c.server == gateway.URL {
				continue // whose answer to one request is said in the words of client-go
			}
			began := time.Now()
			p := start(t, append(strings.Fields(command), "--server="+c.server)...)
			p.ends(t, exitError)
			if took := time.Since(began); took > awayTime || !strings.Contains(p.errs.String(), c.want) {
				t.Errorf("%s, %s: ended after %s, want less than %s and the cause %q\n%s", command, c.server, took, awayTime,
					c.want, p)
			}
		}
	}
}

// A server that takes requests and answers none is waited for until --timeout or --request-timeout, which the
// error names.
func TestServerThatIsSilentIsWaitedForUntilTheTimeout(t *testing.T) {
	over := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer silent.Close()
	defer close(over)
	for _, flag := range []string{"--timeout", "--request-timeout"} {
		began := time.Now()
		p := start(t, "n1", "--server="+silent.URL, flag+"=1s")
		p.ends(t, exitError)
		if took := time.Since(began); took > awayTime || !strings.Contains(p.errs.String(), "("+flag+"); nothing was done") {
			t.Errorf("%s=1s: ended after %s, want less than %s and the flag named\n%s", flag, took, awayTime, p)
		}
	}
}

// Where the API server goes away in the middle, --timeout still ends the drain, which names the cause.
func TestServerThatGoesAwayIsNotWaitedForPastTheTimeout(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.bare(t, "tool", n1)
	target, err := url.Parse(w.env.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	relay := startRelay(t, target.Host)
	p := w.drain(t, n1, "--server=https://"+relay.address(), "--tls-server-name="+target.Hostname(), "--timeout=20s")
	p.until(t, "Unmanaged")
	relay.stop()
	p.until(t, "The API server does not answer: ")
	p.ends(t, exitBlocked)
	p.says(t, "DeadlinePassed", "no further eviction starts; the API server does not answer: dial tcp",
		"connection refused")
	w.heldBy(t, n1, defaultHolder(t))
}

// Connection flags mean what they mean for kubectl, and a right is asked of the user that --as names.
func TestConnectionFlagsOfKubectl(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.bare(t, "tool", n1)
	user := "stranger-of-" + w.namespace
	p := w.drain(t, "node/"+n1, "--as="+user, "--as-group=drain-test", "--force")
	p.ends(t, exitError)
	if !strings.Contains(p.errs.String(), `User "`+user+`" cannot list resource`) {
		t.Errorf("got no refusal of the user that is impersonated\n%s", p)
	}
	p = start(t, n1, "--server="+w.env.Config().Host, "--insecure-skip-tls-verify", "--token=wrong", "--force")
	p.ends(t, exitError)
	if !strings.Contains(p.errs.String(), "Unauthorized") {
		t.Errorf("got no refusal of the token\n%s", p)
	}
	p = w.drain(t, "nodes/"+n1, "--force", "--request-timeout=30s", "--chunk-size=100", "-v=6", "-n", w.namespace,
		"--context=env")
	if code := p.wait(t); code == exitDone {
		if !strings.Contains(p.errs.String(), "note: --chunk-size has no effect") || !strings.Contains(p.errs.String(),
			"round_trippers") {
			t.Errorf("got no note and no log\n%s", p)
		}
	} else if !strings.Contains(p.errs.String(), `context "env" does not exist`) {
		t.Errorf("got exit code %d\n%s", code, p)
	}
}

// Item 9: --disable-eviction deletes in place of evicting, past a budget, with the UID, and says so.
func TestDisableEvictionDeletes(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.app(t, "db", 1)
	w.budget(t, "db", 1, 0)
	_ = w.node(t, "2")

	plan := w.drain(t, n1, "--disable-eviction", "--dry-run=server")
	plan.ends(t, exitDone)
	plan.says(t, "Every pod can leave.")
	p := w.drain(t, n1, "--disable-eviction", "--settle=0s")
	p.ends(t, exitDone)
	p.says(t, "deleted past its budget "+w.namespace+"/db-", "Forced")
	if !strings.Contains(p.errs.String(), "warning: --disable-eviction deletes the pods") {
		t.Errorf("got no warning\n%s", p)
	}
	asked := w.requests(t, w.user)
	if asked["create pods/eviction"] != 0 || asked["delete pods"] != 2 || len(w.pods(t, n1)) != 0 {
		t.Errorf("got the requests %v, want one deletion, one dry run of it, and no eviction", asked)
	}
}

// A pod that should have ended long ago is not waited for with --skip-wait-for-delete-timeout, and is named.
func TestPodThatDoesNotEndIsSkippedWhereThatIsAskedFor(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.bare(t, "stuck", n1)
	pods := w.client.CoreV1().Pods(w.namespace)
	patch := []byte(`{"metadata":{"finalizers":["test.belay.dev/stuck"]}}`)
	if _, err := pods.Patch(t.Context(), "stuck", "application/merge-patch+json", patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = pods.Patch(t.Context(), "stuck", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{})
	})
	p := w.drain(t, n1, "--force", "--skip-wait-for-delete-timeout=1", "--settle=0s")
	p.ends(t, exitDone)
	if !strings.Contains(p.errs.String(), "not waited for, and may still run: "+w.namespace+"/stuck") {
		t.Errorf("got no warning that names the pod\n%s", p)
	}
}

// Item 9: --dry-run=client sends nothing that writes; --dry-run=server has the API server judge each write, and
// stores none.
func TestDryRunsOfKubectl(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.app(t, "web", 2)
	w.guardEvictions(t)
	p := w.drain(t, n1, "--dry-run=client")
	p.ends(t, exitDone)
	p.says(t, "Every pod can leave.")
	asked := w.requests(t, w.user)
	if asked["create pods/eviction"] != 0 || asked["patch nodes"] != 0 {
		t.Errorf("client: got the requests %v, want none that writes", asked)
	}
	e2e.Eventually(t, settled, "the policy refuses", func() error {
		server := w.drain(t, n1, "--dry-run=server")
		if code := server.wait(t); code != exitBlocked {
			return notYet(server)
		}
		server.says(t, "AdmissionDenied: admission refused (", "frozen by the test")
		return nil
	})
	plan := w.drain(t, "plan", n1)
	plan.ends(t, exitBlocked)
	plan.says(t, "2 pods can't leave", "AdmissionDenied: admission refused (", "frozen by the test")
	unproven := w.drain(t, "plan", n1, "--unproven")
	unproven.ends(t, exitDone)
	w.asFound(t, n1, false)
	if got := w.pods(t, n1); len(got) != 2 {
		t.Errorf("got pods %q, want both", got)
	}
}

// guardEvictions has an admission policy refuse each eviction in the namespace.
func (w *world) guardEvictions(t *testing.T) {
	t.Helper()
	policies := w.client.AdmissionregistrationV1()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
						Resources: []string{"pods/eviction"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "frozen by the test"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: w.namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace},
			}},
		},
	}
	if _, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Cordon and uncordon print and do what those of kubectl do; an uncordon ends this holder's own mark too.
func TestCordonAndUncordon(t *testing.T) {
	w := newWorld(t)
	n1, n2 := w.node(t, "1"), w.node(t, "2")
	for _, c := range []struct {
		line, want string
		cordoned   bool
	}{
		{"cordon node/" + n1 + " --dry-run=client", "node/" + n1 + " cordoned (dry run)\n", false},
		{"cordon " + n1 + " --dry-run=server", "node/" + n1 + " cordoned (server dry run)\n", false},
		{"cordon node/" + n1, "node/" + n1 + " cordoned\n", true},
		{"cordon " + n1, "node/" + n1 + " already cordoned\n", true},
		{"cordon -l " + poolLabel + "=" + w.namespace, "node/" + n1 + " already cordoned\nnode/" + n2 + " cordoned\n", true},
		{"uncordon " + n1 + " " + n2, "node/" + n1 + " uncordoned\nnode/" + n2 + " uncordoned\n", false},
		{"uncordon " + n1, "node/" + n1 + " already uncordoned\n", false},
	} {
		p := w.drain(t, strings.Fields(c.line)...)
		p.ends(t, exitDone)
		if p.out.String() != c.want {
			t.Errorf("%s: got %q, want %q", c.line, p.out, c.want)
		}
		w.asFound(t, n1, c.cordoned)
	}
	for _, holder := range []string{"drain/jane", "drain/joe"} {
		w.drain(t, n1, "--settle=0s", "--holder="+holder).ends(t, exitDone)
	}
	p := w.drain(t, "uncordon", n1, "--holder=drain/jane")
	p.ends(t, exitDone)
	if n := w.get(t, n1); n.Spec.Unschedulable || strings.Join(holders(n), " ") != "drain/joe" {
		t.Errorf("got the node cordoned %v, marked by %q, want it open with the other mark", n.Spec.Unschedulable, holders(n))
	}
	if !strings.Contains(p.errs.String(), "marked by drain/joe, whose drain pauses") ||
		p.out.String() != "node/"+n1+" uncordoned\n" {
		t.Errorf("got no word of the other holder\n%s", p)
	}
	w.drain(t, "cordon", "nowhere").ends(t, exitError)
	user := "cordoner-" + w.namespace
	w.grant(t, user, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}})
	p = start(t, "cordon", n2, "--kubeconfig="+w.login(t, user))
	p.ends(t, exitError)
	if !strings.Contains(p.errs.String(), `cannot patch resource "nodes"`) {
		t.Errorf("got no word of the right that is missing\n%s", p)
	}
}
