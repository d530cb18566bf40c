// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machineqemu_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/machineqemu"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// within bounds the wait for a guest, which boots in seconds on a machine that has nothing else to do.
const within = 3 * time.Minute

// Annotations of the guest.
const (
	sentinelAnnotation = "guest.belay.dev/sentinel"
	bootsAnnotation    = "guest.belay.dev/boots"
)

// A bed is a namespace of machines, a directory with their virtual machines, and a controller in a process of its own.
type bed struct {
	t       *testing.T
	env     *testenv.Env
	images  images
	order   order
	core    kubernetes.Interface
	objects dynamic.ResourceInterface
	child   *exec.Cmd
	log     testproc.Buffer
}

func newBed(t *testing.T) *bed {
	t.Helper()
	all := imagesOf(t)
	env := shared.Env(t)
	b := &bed{t: t, env: env, images: all}
	must(t, env.InstallCRDs(t.Context(), v1alpha1.CRDs()...))
	config := env.Config()
	config.QPS = -1
	root := newRoot(t)
	b.order = order{
		Options:    machineqemu.Options{Root: root, Images: all.byName},
		Kubeconfig: env.Kubeconfig(), Namespace: env.Namespace(t), Endpoint: config.Host,
	}
	b.core = kubernetes.NewForConfigOrDie(config)
	b.objects = dynamic.NewForConfigOrDie(config).Resource(v1alpha1.MachinesResource).Namespace(b.order.Namespace)
	b.control()
	t.Cleanup(func() {
		kill(b.child)
		if t.Failed() {
			b.tell()
		}
	})
	return b
}

// newRoot is a directory of machines that ends with the test.
func newRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, switchOff(root)) })
	return filepath.Join(root, "lab")
}

// control starts a controller, after the one before was killed.
func (b *bed) control() {
	b.t.Helper()
	if b.child != nil {
		kill(b.child)
	}
	b.child = b.order.start(b.t, &b.log)
}

// tell logs what helps to find out why.
func (b *bed) tell() {
	b.t.Logf("log of the controllers:\n%s", b.log.String())
	consoles, _ := filepath.Glob(filepath.Join(b.order.Options.Root, "machines", "*", "console*.log")) // the pattern is right
	for _, name := range consoles {
		text, err := os.ReadFile(name)
		b.t.Logf("%s (%v):\n%s", name, err, text)
	}
}

// create makes a machine whose guest has the rights of its own Node.
func (b *bed) create(name, kernel string, more map[string]any) {
	b.t.Helper()
	ctx := b.t.Context()
	path := filepath.Join(b.t.TempDir(), "kubeconfig")
	must(b.t, testenv.WriteKubeconfig(path, b.env.User(b.t, "system:node:"+name, "system:nodes")))
	kubeconfig, err := os.ReadFile(path)
	must(b.t, err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
	_, err = b.core.CoreV1().Secrets(b.order.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	must(b.t, err)
	spec := map[string]any{
		"bootstrap":      map[string]any{"secretRef": map[string]any{"name": name}},
		"providerConfig": map[string]any{"apiVersion": machineqemu.APIVersion, "kind": machineqemu.KindName, "kernel": kernel},
	}
	for k, v := range more {
		spec[k] = v
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind(v1alpha1.MachineKind)
	o.SetName(name)
	_, err = b.objects.Create(ctx, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	must(b.t, err)
}

// setKernel edits the provider's part of a machine, and nothing else.
func (b *bed) setKernel(name, kernel string) {
	b.t.Helper()
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"providerConfig": map[string]any{"kernel": kernel}}})
	must(b.t, err)
	_, err = b.objects.Patch(b.t.Context(), name, types.MergePatchType, data, metav1.PatchOptions{})
	must(b.t, err)
}

func (b *bed) delete(name string) {
	b.t.Helper()
	must(b.t, b.objects.Delete(b.t.Context(), name, metav1.DeleteOptions{}))
	b.until(name, "gone", func(m *v1alpha1.Machine) bool { return m == nil })
}

// until waits for something to be true of a machine; nil is one that is gone.
func (b *bed) until(name, what string, is func(m *v1alpha1.Machine) bool) *v1alpha1.Machine {
	b.t.Helper()
	var last *v1alpha1.Machine
	err := testproc.Poll(within, func() error {
		b.census()
		var m *v1alpha1.Machine
		u, err := b.objects.Get(b.t.Context(), name, metav1.GetOptions{})
		if err == nil {
			m = &v1alpha1.Machine{}
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, m)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if last = m; !is(m) {
			return fmt.Errorf("machine %q is not %s: it is at %+v", name, what, summary(m))
		}
		return nil
	})
	must(b.t, err)
	return last
}

// summary is what a failure says of a machine.
func summary(m *v1alpha1.Machine) string {
	if m == nil {
		return "nothing"
	}
	text, err := json.Marshal(m.Status)
	return fmt.Sprintf("generation %d, %s %v", m.Generation, text, err)
}

// running waits until a machine is as its spec says, with a Node that reports a kernel, and returns both.
func (b *bed) running(name, kernel string) (*v1alpha1.Machine, *corev1.Node) {
	b.t.Helper()
	m := b.until(name, "running with kernel "+kernel, func(m *v1alpha1.Machine) bool {
		return m != nil && m.Status.Phase == "Running" && m.Status.ObservedGeneration == m.Generation && m.Status.Update == nil && m.Status.NodeRef != nil &&
			m.Status.Versions != nil && m.Status.Versions.Other["kernel"] == kernel
	})
	n, err := b.core.CoreV1().Nodes().Get(b.t.Context(), m.Status.NodeRef.Name, metav1.GetOptions{})
	must(b.t, err)
	if n.Status.NodeInfo.KernelVersion != kernel || n.Spec.ProviderID != m.Spec.ProviderID {
		b.t.Errorf("Node %q has kernel %q and provider ID %q, want %q and %q", n.Name, n.Status.NodeInfo.KernelVersion, n.Spec.ProviderID, kernel, m.Spec.ProviderID)
	}
	return m, n
}

// census looks at the virtual machines of the bed, by token, and fails where a token has two.
func (b *bed) census() map[string][]int {
	b.t.Helper()
	all := emulators(b.order.Options.Root)
	for token, pids := range all {
		if len(pids) > 1 {
			b.t.Errorf("R-MA-02: machine %q has the virtual machines %v at the same time", token, pids)
		}
	}
	return all
}

// listed are the instances that the provider has.
func (b *bed) listed() []provider.Instance {
	b.t.Helper()
	p, err := machineqemu.New(b.t.Context(), b.order.Options)
	must(b.t, err)
	defer p.Close()
	all, err := p.List(b.t.Context(), provider.Scope{Cluster: b.order.Namespace})
	must(b.t, err)
	return all
}

// emulators are the processes that are a qemu, by the token of their machine.
func emulators(root string) map[string][]int {
	found := map[string][]int{}
	for pid, token := range processes(root) {
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.HasPrefix(string(comm), "qemu-system") {
			found[token] = append(found[token], pid)
		}
	}
	return found
}

// processes are those of the machines of a root, with their tokens.
func processes(root string) map[int]string {
	found := map[int]string{}
	environs, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, name := range environs {
		_, rest, marked := strings.Cut("\x00"+string(testproc.Environ(name)), "\x00BELAY_MACHINE_DIR="+filepath.Join(root, "machines")+"/")
		token, _, whole := strings.Cut(rest, "\x00")
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && marked && whole {
			found[pid] = token
		}
	}
	return found
}

// switchOff kills what runs beneath a directory.
func switchOff(dir string) error {
	return testproc.Poll(30*time.Second, func() error {
		left := processes(filepath.Join(dir, "lab"))
		for pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(left) > 0 {
			return fmt.Errorf("processes are left: %v", left)
		}
		return nil
	})
}
