// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
)

var (
	shared   testenv.Shared // nothing is started unless a test asks for it
	programs e2e.Programs
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == providerArg {
		if err := beProvider(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if code, child := rolloutstage.Main(); child {
		os.Exit(code)
	}
	os.Exit(programs.Main(m, &shared))
}

const (
	// patience bounds each wait.
	patience = 2 * time.Minute
	// account is who the manifests say that the controller is.
	account = "system:serviceaccount:belay-system:belay-controller"
	// auditPolicy has every request of the controller in the log.
	auditPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, users: [\"" + account + "\"]}]\n"
)

// Two replicas with no more rights than the manifests give: one leads, the rollout goes on when it is killed, and the other hands over when it is told to
// stop. No cap is broken, no request is denied.
func TestReplicasCarryOutRollouts(t *testing.T) {
	t.Parallel()
	f, err := rolloutstage.New(t.Context(), rolloutstage.Options{Nodes: 6, Cap: 2, PodsPerNode: 2, Verify: 300 * time.Millisecond, AuditPolicy: auditPolicy})
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	e2e.Apply(t, f.Env.Config(), "../../manifests/controller/rbac.yaml")
	mayBegin(t, f.Core)
	kubeconfig := userConfig(t, f.Env)
	first := start(t, f.Env, kubeconfig)
	first.awaits("leads", `belay_leader{name="rollout-fleet"} 1`)
	second := start(t, f.Env, kubeconfig)
	second.awaits("waits", `belay_leader{name="rollout-fleet"} 0`)
	second.shows("waits", `"ready":true`) // who does not lead has the page, too

	turn := newTurn(t, f)
	turn("true")
	must(t, f.Begin(t.Context(), "v2", nil))
	first.awaits("waits for the switch", `belay_rollout_waiting_nodes{domain="fleet",reason="Gate",rollout="fleet"} 6`)
	turn("false")
	first.awaits("begins", `result="Succeeded"`)
	must(t, first.cmd.Process.Kill())
	second.awaits("takes over", `belay_leader{name="rollout-fleet"} 1`)
	second.completes(f, "v2")

	third := start(t, f.Env, kubeconfig)
	third.awaits("waits", `belay_leader{name="rollout-fleet"} 0`)
	second.stops()
	third.awaits("takes over", `belay_leader{name="rollout-fleet"} 1`)
	must(t, f.Turn(t.Context(), "v3"))
	third.completes(f, "v3")
	third.shows("goes on", `"rollout":"fleet"`)
	third.shows("is done", `"runs":"v3`)
	third.awaits("counts", `belay_rollout_nodes{domain="fleet",rollout="fleet",state="Done"} 6`)
	third.stops()
	if seen := f.Truth.Report(); len(seen.Wrong) > 0 {
		t.Errorf("what may never be was seen: %q", seen.Wrong)
	}
	for _, line := range denied(t, f.Env.AuditLog()) {
		t.Errorf("the manifests give too few rights: %s", line)
	}
}

// mayBegin waits until the API server knows of the account's bindings, those of controller/rbac.yaml and of what gives more rights: a request that is
// denied only because it comes too early would count as a right that the manifests lack.
func mayBegin(t *testing.T, admin kubernetes.Interface, more ...authorizationv1.ResourceAttributes) {
	t.Helper()
	e2e.Allowed(t, admin, account, []string{"system:serviceaccounts"}, append([]authorizationv1.ResourceAttributes{
		{Resource: "nodes", Verb: "list"},
		{Group: "coordination.k8s.io", Resource: "leases", Verb: "create", Namespace: "belay-system"},
	}, more...)...)
}

// newTurn makes the switch, and returns what turns it: R-RO-07.
func newTurn(t *testing.T, f *rolloutstage.Fleet) func(disabled string) {
	t.Helper()
	maps := f.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("belay-system")
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "belay-controller"}}}
	_, err := maps.Create(t.Context(), u, metav1.CreateOptions{})
	must(t, err)
	return func(disabled string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"data": {"disabled": %q, "reason": "a test"}}`, disabled)
		_, err := maps.Patch(t.Context(), "belay-controller", types.MergePatchType, patch, metav1.PatchOptions{})
		must(t, err)
	}
}

// Whatever is wrong on the command line is said at once, all of it, with what would be right.
func TestCommandLineIsRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--domains=A_b,x,x", "--rate=0"}, []string{`--domains="A_b"`, `--domains="x": must be named once`, `--rate="0": must be more than 0`}},
		{[]string{"--lease-duration=1s", "--listen=here"}, []string{`--lease-duration="1s": must be at least 5s`, `--listen="here"`}},
		{[]string{"--switch=A_b"}, []string{`--switch="A_b"`}},
		{[]string{"--drain-policy=/does/not/exist"}, []string{"reading the policy", "/does/not/exist"}},
		{[]string{"--lease-duration=soon"}, []string{`--lease-duration="soon": must be a duration`}},
		{[]string{"--page-bind-address=:8474"}, []string{`--page-bind-address=":8474": must be a loopback address`}},
		{[]string{"--page-bind-address=192.0.2.1:8474"}, []string{`--page-bind-address="192.0.2.1:8474": must be a loopback address`}},
		{[]string{"--page-hosts=fleet.example.com:443"}, []string{`--page-hosts="fleet.example.com:443": must be a name without a port`, "must be empty without --page-bind-address"}},
		{[]string{"--page-name=a\tb"}, []string{`--page-name="a\tb": must be of characters that can be seen`, `--page-name="a\tb": must be empty without --page-bind-address`}},
		{[]string{"--max-unavailable=-1"}, []string{`--max-unavailable="-1": must be a number of nodes`}},
		{[]string{"--machine-endpoint=https://api.example.com"}, []string{`--machine-provider="": must name the program`}},
		{[]string{"--machine-provider=p", "--machine-domain=x", "--machine-provider-env=A=b", "--machine-namespace=A_b"}, []string{
			`--cluster="": must name this cluster`, `--machine-domain="x": must be one of --domains, ["default"]`, `--machine-provider-env="A=b": must be the name of a variable`,
			`--machine-namespace="A_b"`,
		}},
		{[]string{"--machine-provider=p", "--cluster=a b"}, []string{`--cluster="a b"`}},
		{[]string{"--agent-namespace=belay-system", "--agent-lease-duration=1s", "--agent-gc-after=1s"}, []string{
			`--agent-namespace="belay-system": must not be --namespace`, `--agent-lease-duration="1s": must be at least 5s`, `--agent-gc-after="1s": must be at least twice`,
		}},
		{[]string{"--log-text-split-stream"}, []string{"the command line is wrong", "LoggingAlphaOptions"}},
		{[]string{"--logging-format=xml"}, []string{"the command line is wrong", "xml"}},
		{[]string{"--logging-format=json", "--feature-gates=LoggingBetaOptions=false"}, []string{"Log format json is disabled, see LoggingBetaOptions"}},
		{[]string{"--feature-gates=NoSuchGate=true"}, []string{"--feature-gates", "NoSuchGate"}},
		{[]string{"--kubeconfig=/does/not/exist"}, []string{`--kubeconfig="/does/not/exist": must be a kubeconfig`}},
	} {
		command := NewCommand()
		command.SetArgs(c.args)
		err := command.ExecuteContext(t.Context())
		if err == nil {
			t.Errorf("%q: no error", c.args)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: the error is %q, want %q in it", c.args, err, want)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// replica is a process of the controller.
type replica struct {
	t      *testing.T
	cmd    *exec.Cmd
	log    *testproc.Buffer
	listen string
	page   string
	done   chan struct{}
}

func start(t *testing.T, env *testenv.Env, kubeconfig string) *replica {
	t.Helper()
	return startWith(t, env, kubeconfig, func(*exec.Cmd) {})
}

// startWith starts one whose command is changed before.
func startWith(t *testing.T, env *testenv.Env, kubeconfig string, change func(*exec.Cmd)) *replica {
	t.Helper()
	r := &replica{t: t, log: &testproc.Buffer{}, done: make(chan struct{})}
	r.listen, r.page = fmt.Sprintf("127.0.0.1:%d", testenv.Port(t)), fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	r.cmd = exec.Command(programs.Path(t, "github.com/belayproject/belay/examples/controller"),
		"--kubeconfig="+kubeconfig, "--domains="+rolloutstage.Domain, "--lease-duration=5s", "--listen="+r.listen, "--page-bind-address="+r.page,
		"--pod-uid="+t.Name()+r.listen)
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	change(r.cmd)
	env.Mark(r.cmd)
	r.runs()
	return r
}

// runs starts the process, which ends with the test.
func (r *replica) runs() {
	r.t.Helper()
	must(r.t, r.cmd.Start())
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait()
	}()
	r.t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.done
		if r.t.Failed() {
			r.t.Logf("the controller on %s printed:\n%s", r.listen, r.log)
		}
	})
}

// awaits waits until the metrics have a text.
func (r *replica) awaits(what, text string) {
	r.t.Helper()
	err := testproc.Poll(patience, func() error {
		page, err := r.get("/metrics")
		if err != nil {
			return err
		}
		if !strings.Contains(page, text) {
			return fmt.Errorf("the metrics have no %q", text)
		}
		return nil
	})
	if err != nil {
		r.t.Fatalf("the replica on %s never %s: %v", r.listen, what, err)
	}
}

// shows waits until the fleet page tells a text of the first node.
func (r *replica) shows(what, text string) {
	r.t.Helper()
	err := testproc.Poll(patience, func() error {
		story, err := r.ask(r.page, "/node?name="+rolloutstage.NodeName(0))
		if err == nil && !strings.Contains(story, text) {
			err = fmt.Errorf("the story has no %q: %s", text, story)
		}
		return err
	})
	if err != nil {
		r.t.Fatalf("the replica on %s never shows that it %s: %v", r.listen, what, err)
	}
}

func (r *replica) get(path string) (string, error) { return r.ask(r.listen, path) }

func (r *replica) ask(address, path string) (string, error) {
	select {
	case <-r.done:
		return "", errors.New("the process has ended")
	default:
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, response.Status, text)
	}
	return string(text), err
}

// completes waits until every node runs a revision and was given back.
func (r *replica) completes(f *rolloutstage.Fleet, revision string) {
	r.t.Helper()
	if err := testproc.Poll(patience, func() error { return f.Completed(r.t.Context(), revision) }); err != nil {
		r.t.Fatal(err)
	}
	if page, err := r.get("/readyz"); err != nil {
		r.t.Errorf("/readyz says %q, %v", page, err)
	}
}

// stops tells the replica to stop, which is no error.
func (r *replica) stops() {
	r.t.Helper()
	must(r.t, r.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-r.done:
	case <-time.After(patience):
		r.t.Fatalf("the replica on %s does not stop", r.listen)
	}
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		r.t.Errorf("the replica on %s ended with code %d", r.listen, code)
	}
}

// userConfig is a kubeconfig of the account of the manifests.
func userConfig(t *testing.T, env *testenv.Env) string {
	t.Helper()
	config, err := env.NewUser(account, "system:serviceaccounts")
	must(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, testenv.WriteKubeconfig(path, config))
	return path
}

// denied are the lines of an audit log about requests that were denied.
func denied(t *testing.T, path string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	requests := 0
	for line := range strings.Lines(string(text)) {
		requests++
		if strings.Contains(line, `"code":403`) {
			lines = append(lines, line)
		}
	}
	if requests < 20 {
		t.Errorf("the audit log has %d requests of the controller: nothing is shown", requests)
	}
	return lines
}
