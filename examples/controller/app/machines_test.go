// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/examples/internal/controller/wire"
	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/provider"
	execprovider "github.com/belayproject/belay/machine/provider/exec"
	"github.com/belayproject/belay/machine/provider/providertest"
	machinev1alpha1 "github.com/belayproject/belay/machine/v1alpha1"
	rolloutv1alpha1 "github.com/belayproject/belay/rollout/v1alpha1"
)

const (
	// providerArg has the test's program be a provider of the cloud that cloudEnv names.
	providerArg = "be-a-provider"
	cloudEnv    = "BELAY_TEST_CLOUD"
	// machineSpace is that of the manifests.
	machineSpace = "belay-machines"
)

// beProvider is the program that the controller calls.
func beProvider() error {
	cloud, err := providertest.New(providertest.Options{URL: os.Getenv(cloudEnv)})
	if err != nil {
		return err
	}
	return execprovider.Serve(context.Background(), cloud, os.Args[len(os.Args)-1], os.Stdin, os.Stdout)
}

// A controller that is told of a provider and of agents looks after machines and counts who is alive, with no more rights than the manifests give: machines are
// made by the program and have their Nodes, and the Lease of an agent that is gone is deleted. A machine is drained and deleted, and the last one of a role is
// not, as the checks before an end have it.
func TestMachinesAndAgents(t *testing.T) {
	t.Parallel()
	s := newMachineStage(t)
	for _, name := range []string{"a", "b"} {
		s.create(name)
		s.phase(name, "Running")
	}
	s.replica.awaits("counts what it does", `belay_machine_calls_total{class="OK",kind="Create"}`)
	s.replica.awaits("counts configs", `belay_config_nodes{status="Absent"} 2`)

	end := s.agent("node-of-an-agent")
	s.replica.awaits("sees the agent", `belay_agents{state="Alive"} 1`)
	end()
	s.replica.awaits("collects its Lease", `belay_agent_leases_collected_total{outcome="Collected"} 1`)

	must(t, s.machines().Delete(t.Context(), "a", metav1.DeleteOptions{}))
	s.eventually("the machine goes", func() error { return s.gone("a") })
	s.left(1)
	must(t, s.machines().Delete(t.Context(), "b", metav1.DeleteOptions{}))
	s.eventually("the last worker stays", func() error { return s.says("b", `is the last with role "worker"`) })
	s.left(1)
	s.replica.stops()
	for _, line := range denied(t, s.env.AuditLog()) {
		t.Errorf("the manifests give too few rights: %s", line)
	}
}

// gone is an error as long as a machine is there.
func (s *machineStage) gone(name string) error {
	switch u, err := s.machines().Get(s.t.Context(), name, metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("it is still there: %v", u.Object["status"])
	}
}

// says is an error as long as the status of a machine does not have a text.
func (s *machineStage) says(name, want string) error {
	u, err := s.machines().Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if is := fmt.Sprint(u.Object["status"]); !strings.Contains(is, want) {
		return fmt.Errorf("it says %s, want %q in it", is, want)
	}
	return nil
}

// left checks how many instances and Nodes there are.
func (s *machineStage) left(want int) {
	s.t.Helper()
	hosts, err := s.admin.Instances(s.t.Context())
	must(s.t, err)
	nodes, err := s.core.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
	must(s.t, err)
	if len(hosts) != want || len(nodes.Items) != want {
		s.t.Errorf("%d instances and %d Nodes are left, want %d of each", len(hosts), len(nodes.Items), want)
	}
}

type machineStage struct {
	t       *testing.T
	env     *testenv.Env
	core    kubernetes.Interface
	objects dynamic.Interface
	admin   *providertest.Admin
	replica *replica
}

func newMachineStage(t *testing.T) *machineStage {
	t.Helper()
	server, err := providertest.NewServer(providertest.ServerOptions{Dir: t.TempDir()})
	must(t, err)
	cloud := httptest.NewServer(server)
	t.Cleanup(cloud.Close)
	env := testenv.Start(t, testenv.Options{With: []testenv.Component{testenv.Kwok}, AuditPolicy: auditPolicy})
	must(t, env.InstallCRDs(t.Context(), append(machinev1alpha1.CRDs(), rolloutv1alpha1.CRDs()...)...))
	for _, path := range []string{"controller/rbac.yaml", "machines/rbac.yaml", "agent/rbac.yaml", "agent/view.yaml"} {
		e2e.Apply(t, env.Config(), "../../manifests/"+path)
	}
	s := &machineStage{t: t, env: env, core: kubernetes.NewForConfigOrDie(env.Config()), objects: dynamic.NewForConfigOrDie(env.Config())}
	mayBegin(t, s.core, authorizationv1.ResourceAttributes{Resource: "persistentvolumes", Verb: "list"}, // the last binding in the cluster
		authorizationv1.ResourceAttributes{Group: "coordination.k8s.io", Resource: "leases", Verb: "list", Namespace: "belay-agents"}) // and in a namespace
	s.admin, err = providertest.NewAdmin(providertest.Options{URL: cloud.URL})
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	s.replica = startWith(t, env, userConfig(t, env), func(c *exec.Cmd) {
		c.Args = append(c.Args, "--machine-provider="+self, "--machine-provider-args="+providerArg, "--machine-provider-env="+cloudEnv, "--cluster=test",
			"--lease-duration=20s", "--agent-namespace=belay-agents", "--agent-lease-duration=10s", "--agent-gc-after=20s")
		c.Env = append(os.Environ(), cloudEnv+"="+cloud.URL)
	})
	s.replica.awaits("leads", `belay_leader{name="machines"} 1`)
	go s.join(t.Context())
	return s
}

func (s *machineStage) machines() dynamic.ResourceInterface {
	return s.objects.Resource(machinev1alpha1.MachinesResource).Namespace(machineSpace)
}

func (s *machineStage) create(name string) {
	s.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"roles": []any{"worker"}, "deletion": map[string]any{"diskPolicy": "Destroy"},
		"providerConfig": map[string]any{
			"apiVersion": providertest.APIVersion, "kind": providertest.KindName, "size": "small", "startMilliseconds": int64(100),
		},
	}}}
	o.SetAPIVersion(machinev1alpha1.GroupVersion.String())
	o.SetKind(machinev1alpha1.MachineKind)
	o.SetName(name)
	_, err := s.machines().Create(s.t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	must(s.t, err)
}

func (s *machineStage) phase(name, want string) {
	s.t.Helper()
	s.eventually("machine "+name+" is "+want, func() error {
		u, err := s.machines().Get(s.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(u.Object, "status", "phase"); got != want {
			return fmt.Errorf("it is %s: %v", got, u.Object["status"])
		}
		return nil
	})
}

func (s *machineStage) eventually(what string, is func() error) {
	s.t.Helper()
	if err := testproc.Poll(patience, is); err != nil {
		s.t.Fatalf("it never comes that %s: %v", what, err)
	}
}

// join registers the Nodes of instances, as their kubelets would, until ctx ends.
func (s *machineStage) join(ctx context.Context) {
	joined := map[string]bool{}
	for tick := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		hosts, err := s.admin.Instances(ctx)
		if err != nil {
			continue
		}
		for _, h := range hosts {
			if h.State != provider.Running || joined[h.Token] {
				continue
			}
			_, err := s.env.CreateNode(ctx, "node-"+h.Token, testenv.KwokNode, func(n *corev1.Node) { n.Spec.ProviderID = h.ProviderID })
			joined[h.Token] = err == nil || apierrors.IsAlreadyExists(err)
		}
	}
}

// agent keeps a Lease as that of examples/agent until end is called, which leaves it as it is.
func (s *machineStage) agent(name string) (end func()) {
	s.t.Helper()
	const space = "belay-agents"
	m, err := identity.New(s.core.CoordinationV1().Leases(space), identity.Spec{
		Namespace: space, Name: name, Component: wire.AgentComponent, Host: name, Fingerprint: identity.LocalFingerprint("/"), KeepOnStop: true,
		Timing: identity.Timing{Renew: time.Second, Jitter: 0.04, Hold: 3 * time.Second, Liveness: 10 * time.Second, Duration: time.Minute, Stop: time.Second},
	}, identity.Options{})
	must(s.t, err)
	ctx, stop := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- m.Run(ctx, func(ctx context.Context, _ identity.Epoch) error { <-ctx.Done(); return nil })
	}()
	return func() { stop(); <-done }
}
