// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/admission"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/v1alpha1"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// A stage is a real API server that asks a reviewer on loopback.
type stage struct {
	t         *testing.T
	env       *testenv.Env
	namespace string
	core      kubernetes.Interface
	machines  kube.Machines
	groups    kube.Groups
	client    dynamic.Interface

	mu       sync.Mutex
	sick     string
	warnOnly bool
	warnings []string
}

// HandleWarningHeaderWithContext notes what a Warning header says.
func (s *stage) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, text)
}

// List says that each machine of the control plane has a member.
func (s *stage) List(ctx context.Context, machines []machine.Machine) ([]machine.Member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return members{&fleet{sick: s.sick}}.List(ctx, machines)
}

// ServeHTTP answers as it is set now.
func (s *stage) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	only := s.warnOnly
	s.mu.Unlock()
	admission.Reviewer{
		Fleet:  controller.Fleet{Machines: s.machines, Members: s, Cargo: kube.Cargo{Client: s.core}},
		Groups: s.groups, WarnOnly: only,
	}.ServeHTTP(w, q)
}

// set changes what the reviewer sees, and forgets the warnings.
func (s *stage) set(sick string, warnOnly bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sick, s.warnOnly, s.warnings = sick, warnOnly, nil
}

func (s *stage) warned() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.warnings, "\n")
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func newStage(t *testing.T) *stage {
	t.Helper()
	env := shared.Env(t)
	s := &stage{t: t, env: env, namespace: env.Namespace(t)}
	s.must(env.InstallCRDs(t.Context(), v1alpha1.CRDs()...))
	config := rest.CopyConfig(env.Config())
	config.QPS, config.WarningHandlerWithContext = -1, s
	s.core, s.client = kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	var err error
	s.machines, err = kube.NewMachines(s.client, s.namespace)
	s.must(err)
	s.groups, err = kube.NewGroups(s.client, s.namespace, s.machines)
	s.must(err)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.machines.Run(ctx, func(machine.Key) {}); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() {
		if err := s.groups.Run(ctx, func(string) {}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); wg.Wait() })
	return s
}

// serve has the API server ask the reviewer about machines and sets of the namespace.
func (s *stage) serve() {
	s.t.Helper()
	dir := s.t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	s.must(s.env.WriteServerCert(cert, key))
	pair, err := tls.LoadX509KeyPair(cert, key)
	s.must(err)
	server := httptest.NewUnstartedServer(s)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	s.t.Cleanup(server.Close)
	ca, err := os.ReadFile(s.env.CAFile())
	s.must(err)
	_, err = s.core.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(s.t.Context(), s.webhook(server.URL, ca), metav1.CreateOptions{})
	s.must(err)
}

func (s *stage) webhook(url string, ca []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "ends.machines.belay.dev", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			FailurePolicy:     ptr.To(admissionregistrationv1.Fail),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update, admissionregistrationv1.Delete},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{
					"machines", "machinesets", "machinesets/scale", "machinedeployments", "machinedeployments/scale",
				}},
			}},
		}},
	}
}

// machine makes one that runs. Its Node exists if it is a worker.
func (s *stage) machine(name, role, set string) {
	s.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"roles": []any{role}, "decommission": false}}}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind(v1alpha1.MachineKind)
	o.SetName(name)
	if set != "" {
		o.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.MachineSetKind, Name: "s", UID: types.UID(set), Controller: ptr.To(true),
		}})
	}
	o, err := s.of().Create(s.t.Context(), o, metav1.CreateOptions{})
	s.must(err)
	node := s.namespace + "-" + name
	n, err := s.core.CoreV1().Nodes().Create(s.t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{corev1.LabelHostname: node}},
	}, metav1.CreateOptions{})
	s.must(err)
	o.Object["status"] = map[string]any{
		"phase": "Running", "incarnation": int64(1), "token": "t-" + name,
		"nodeRef": map[string]any{"name": node, "uid": string(n.UID)},
	}
	_, err = s.of().UpdateStatus(s.t.Context(), o, metav1.UpdateOptions{})
	s.must(err)
}

func (s *stage) of() dynamic.ResourceInterface {
	return s.client.Resource(v1alpha1.MachinesResource).Namespace(s.namespace)
}

// set makes a set without machines.
func (s *stage) makeSet() (uid string) {
	s.t.Helper()
	labels := map[string]any{"pool": "blue"}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(3), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"roles": []any{"worker"}}},
	}}}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind(v1alpha1.MachineSetKind)
	o.SetName("s")
	o, err := s.sets().Create(s.t.Context(), o, metav1.CreateOptions{})
	s.must(err)
	return string(o.GetUID())
}

func (s *stage) sets() dynamic.ResourceInterface {
	return s.client.Resource(v1alpha1.MachineSetsResource).Namespace(s.namespace)
}

// volume is data on the machine's Node alone, bound to a claim.
func (s *stage) volume(name string) {
	s.t.Helper()
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: corev1.PersistentVolumeSpec{
		Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: "local",
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
		ClaimRef:               &corev1.ObjectReference{Namespace: s.namespace, Name: "db"},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{s.namespace + "-" + name}}},
		}}}},
	}}
	_, err := s.core.CoreV1().PersistentVolumes().Create(s.t.Context(), v, metav1.CreateOptions{})
	s.must(err)
}

// enter tries to enter a machine for its end; it is a dry run unless for good.
func (s *stage) enter(name string, forGood bool) error {
	o := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	if forGood {
		o = metav1.PatchOptions{}
	}
	_, err := s.of().Patch(s.t.Context(), name, types.MergePatchType, []byte(`{"spec":{"decommission":true}}`), o)
	return err
}

func (s *stage) delete(name string) error {
	return s.of().Delete(s.t.Context(), name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
}

func (s *stage) refused(err error, want string) {
	s.t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		s.t.Errorf("R-MA-25: %v, want a refusal with %q", err, want)
	}
}

func (s *stage) allowed(err error, warning string) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("R-MA-25: %v, want it allowed", err)
	}
	if w := s.warned(); (w == "") != (warning == "") || !strings.Contains(w, warning) {
		s.t.Errorf("R-MA-25: warnings %q, want %q", w, warning)
	}
}

// R-MA-25: the real API server refuses what would break the quorum or lose data, allows what is harmless, and passes warnings on.
func TestAdmissionOnTheServer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	set := s.makeSet()
	for _, name := range []string{"c0", "c1", "c2"} {
		s.machine(name, "control-plane", "")
	}
	for _, name := range []string{"w0", "w1", "w2"} {
		s.machine(name, "worker", set)
	}
	s.volume("w1")
	s.serve()
	s.set("c1", false)
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		all, err := s.machines.List(t.Context()) // the reviewer's cache, and the API server's list of webhooks
		return len(all) == 6 && s.groups.Synced() && s.enter("c0", false) != nil && s.delete("w0") == nil, err
	})
	s.must(err)

	s.refused(s.enter("c0", false), `member "c1" is unhealthy`)
	s.refused(s.delete("c0"), "set spec.decommission first")
	s.refused(s.delete("w1"), "of "+s.namespace+"/db is on this machine alone")
	s.set("c1", false)
	s.allowed(s.delete("w0"), "")
	_, err = s.sets().Patch(t.Context(), "s", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{}, "scale")
	s.refused(err, `last with role "worker"`)
	s.refused(s.sets().Delete(t.Context(), "s", metav1.DeleteOptions{}), `last with role "worker"`)

	s.set("c1", true)
	s.allowed(s.enter("c0", false), `member "c1" is unhealthy`)
	s.set("", false)
	s.allowed(s.enter("c0", true), "2 of 3 members would remain")
	s.set("", false)
	s.allowed(s.delete("c0"), "2 of 3 members would remain")
}
