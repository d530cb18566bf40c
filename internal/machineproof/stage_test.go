// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machineproof_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// A stage is a namespace of machines, whose kubelets and watchers are in this process.
type stage struct {
	t         *testing.T
	env       *testenv.Env
	namespace string
	core      kubernetes.Interface
	objects   dynamic.ResourceInterface
	of        string // the environment that says which provider
	config    func(size string) any
	sizes     []string
	least     time.Duration // how long a controller lives at least
	instances func(ctx context.Context) ([]provider.Instance, error)
	log       testproc.Buffer
	killed    atomic.Int64
	kills     int

	mu     sync.Mutex
	joined int
	wrong  map[string]bool
	tokens map[string]bool
	nodes  map[string]bool
}

func newStage(t *testing.T, of string) *stage {
	t.Helper()
	env := shared.Env(t)
	s := &stage{t: t, env: env, namespace: env.Namespace(t), of: of, wrong: map[string]bool{}, nodes: map[string]bool{}}
	s.must(env.InstallCRDs(t.Context(), v1alpha1.CRDs()...))
	config := env.Config()
	config.QPS = -1
	s.core = kubernetes.NewForConfigOrDie(config)
	s.objects = dynamic.NewForConfigOrDie(config).Resource(v1alpha1.MachinesResource).Namespace(s.namespace)
	return s
}

// watch looks at the fleet until the test ends.
func (s *stage) watch() {
	ctx, stop := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.look(ctx) }()
	s.t.Cleanup(func() { stop(); <-done })
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// look has kubelets register, and looks for two instances of a machine, until ctx ends.
func (s *stage) look(ctx context.Context) {
	pace := testproc.NewPace()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pace.Next():
		}
		all, err := s.instances(ctx)
		if err != nil {
			continue
		}
		s.check(all)
		for _, i := range all {
			if i.State == provider.Running {
				s.register(ctx, i)
			}
		}
	}
}

func (s *stage) check(all []provider.Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	alive := map[string]string{}
	for _, i := range all {
		if s.tokens != nil {
			s.tokens[i.Token] = true
		}
		if !i.State.Alive() || i.State == provider.Stopping {
			continue
		}
		if other := alive[i.Owner.UID]; other != "" {
			s.wrong[fmt.Sprintf("machine %q has the instances %q and %q", i.Owner.Name, other, i.Token)] = true
		}
		alive[i.Owner.UID] = i.Token
	}
}

// register is a kubelet that comes up, and reports the version that it finds in the spec of its machine.
func (s *stage) register(ctx context.Context, i provider.Instance) {
	nodes := s.core.CoreV1().Nodes()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + i.Token}, Spec: corev1.NodeSpec{ProviderID: i.ProviderID}}
	is, err := nodes.Create(ctx, n, metav1.CreateOptions{})
	if err == nil && !s.runs(ctx, i.Token) { // no kubelet registers after its end
		_ = nodes.Delete(ctx, n.Name, metav1.DeleteOptions{})
		return
	}
	if apierrors.IsAlreadyExists(err) {
		is, err = nodes.Get(ctx, n.Name, metav1.GetOptions{})
	}
	if err != nil {
		return
	}
	version := s.version(ctx, i.Owner.Name)
	if len(is.Status.Conditions) > 0 && is.Status.NodeInfo.KubeletVersion == version {
		return
	}
	is.Status.NodeInfo.KubeletVersion = version
	is.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	if _, err := nodes.UpdateStatus(ctx, is, metav1.UpdateOptions{}); err == nil {
		s.mu.Lock()
		s.joined++
		s.nodes[n.Name] = true
		s.mu.Unlock()
	}
}

// runs reports whether an instance runs now, or can't be known not to.
func (s *stage) runs(ctx context.Context, token string) bool {
	all, err := s.instances(ctx)
	return err != nil || slices.ContainsFunc(all, func(i provider.Instance) bool { return i.Token == token && i.State == provider.Running })
}

func (s *stage) version(ctx context.Context, name string) string {
	m, err := s.get(ctx, name)
	if err != nil || m.Spec.Versions == nil {
		return ""
	}
	return m.Spec.Versions.Kubelet
}

func (s *stage) get(ctx context.Context, name string) (*v1alpha1.Machine, error) {
	u, err := s.objects.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	m := &v1alpha1.Machine{}
	return m, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, m)
}

func (s *stage) create(name, size string) {
	s.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"roles": []any{"worker"}, "versions": map[string]any{"kubelet": "v1.36.1"}, "providerConfig": s.raw(size),
		"deletion": map[string]any{"diskPolicy": "Destroy"},
	}}}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind(v1alpha1.MachineKind)
	o.SetName(name)
	_, err := s.objects.Create(s.t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	s.must(err)
}

func (s *stage) edit(name string, spec map[string]any) {
	s.t.Helper()
	data, err := json.Marshal(map[string]any{"spec": spec})
	s.must(err)
	_, err = s.objects.Patch(s.t.Context(), name, types.MergePatchType, data, metav1.PatchOptions{})
	s.must(err)
}

func (s *stage) delete(name string) {
	s.t.Helper()
	s.must(s.objects.Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}

func (s *stage) isRunning(m *v1alpha1.Machine) bool {
	return m != nil && m.Status.Phase == "Running" && m.Status.ObservedGeneration == m.Generation && m.Status.Update == nil && m.Status.Release == nil
}

func (s *stage) isGone(m *v1alpha1.Machine) bool { return m == nil }

// all waits for something to be true of machines.
func (s *stage) all(names []string, what string, is func(m *v1alpha1.Machine) bool) {
	s.t.Helper()
	for _, name := range names {
		last := &v1alpha1.Machine{}
		err := wait.PollUntilContextTimeout(s.t.Context(), 50*time.Millisecond, 4*time.Minute, true, func(ctx context.Context) (bool, error) {
			m, err := s.get(ctx, name)
			if apierrors.IsNotFound(err) {
				m, err = nil, nil
			}
			if m != nil {
				last = m
			}
			return err == nil && is(m), err
		})
		if err != nil {
			there, _ := s.instances(s.t.Context())
			s.t.Fatalf("machine %q is not %s: %v: %+v; instances %+v; log of the controllers:\n%s", name, what, err, last.Status, there, s.log.String())
		}
	}
}

// nothingLeft checks what is there when all machines are gone.
func (s *stage) nothingLeft() {
	s.t.Helper()
	all, err := s.instances(s.t.Context())
	s.must(err)
	if len(all) > 0 {
		s.t.Errorf("R-MA-02: instances are left: %+v", all)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for wrong := range s.wrong {
		s.t.Errorf("R-MA-02: %s", wrong)
	}
	for name := range s.nodes {
		if _, err := s.core.CoreV1().Nodes().Get(s.t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			s.t.Errorf("R-MA-02: Node %q is left: %v", name, err)
		}
	}
}
