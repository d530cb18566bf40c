// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/identity/nodeauth"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// agents is the service account of the agents in every test.
const agents = "agent"

// The resources that agents write: a custom one, which must be owned by the node, and Leases, which need not.
var (
	shadows = schema.GroupVersionResource{Group: "nodeauth.test.belay.dev", Version: "v1", Resource: "shadows"}
	leases  = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	nodes   = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

const shadowCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shadows.nodeauth.test.belay.dev}
spec:
  group: nodeauth.test.belay.dev
  names: {kind: Shadow, listKind: ShadowList, plural: shadows, singular: shadow}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: &any {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}, subresources: {status: {}}}
  - {name: v2, served: true, storage: false, schema: *any, subresources: {status: {}}}
`

// patience bounds each wait for the real server. A mutant has less of it: it is to fail.
func patience() time.Duration {
	if os.Getenv("BELAY_MUTANT") != "" {
		return 10 * time.Second
	}
	return time.Minute
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until done returns the empty string, which otherwise says what is missing.
func eventually(t testing.TB, done func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	pace := testproc.NewPace()
	for {
		missing := done()
		if missing == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %s", patience(), missing)
		case <-pace.Next():
		}
	}
}

// cluster is the shared control plane with what one test has in it. Its namespace is also the name of its policy, and the beginning of the
// names of its nodes, as those are everybody's.
type cluster struct {
	env       *testenv.Env
	admin     kubernetes.Interface
	objects   dynamic.Interface
	namespace string
	options   nodeauth.Options
}

// newCluster makes a namespace with the service account of the agents, and options under which they may do what the matrix does.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	env := shared.Env(t)
	must(t, env.InstallCRDs(t.Context(), []byte(shadowCRD)))
	c := &cluster{env: env, namespace: env.Namespace(t)}
	c.admin, c.objects = clients(t, env.Config())
	c.account(t, agents)
	all := []string{"get", "create", "update", "patch", "delete"}
	c.options = nodeauth.Options{
		Name:           c.namespace,
		ServiceAccount: types.NamespacedName{Namespace: c.namespace, Name: agents},
		Resources: []nodeauth.Resource{
			{Group: shadows.Group, Resource: shadows.Resource, Verbs: all, Subresources: []string{"status"}},
			{Group: leases.Group, Resource: leases.Resource, Namespace: c.namespace, Prefix: "agent-", Verbs: all, NotOwned: true},
		},
		NodeConditions: []corev1.NodeConditionType{"ConfigOK", "example.com/Other"},
	}
	return c
}

func clients(t testing.TB, config *rest.Config) (kubernetes.Interface, dynamic.Interface) {
	t.Helper()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	typed, err := kubernetes.NewForConfig(config)
	must(t, err)
	objects, err := dynamic.NewForConfig(config)
	must(t, err)
	return typed, objects
}

// account makes a service account with every right on what is guarded, so that nothing but the policy stops it.
func (c *cluster) account(t testing.TB, name string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := c.admin.CoreV1().ServiceAccounts(c.namespace).Create(t.Context(), account, metav1.CreateOptions{})
	must(t, err)
	wide := c.namespace + "-wide-" + name
	c.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: wide}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"", shadows.Group, leases.Group}, Verbs: []string{"*"},
		Resources: []string{"nodes", "nodes/status", "shadows", "shadows/status", "futures", "futures/status", "leases"},
	}}}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: wide},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: wide},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: c.namespace, Name: name}},
	})
}

// create makes objects, which go with the test.
func (c *cluster) create(t testing.TB, objects ...runtime.Object) {
	t.Helper()
	for _, o := range objects {
		u := untyped(t, o)
		api := c.api(u)
		_, err := api.Create(t.Context(), u, metav1.CreateOptions{})
		must(t, err)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
			defer cancel()
			if err := api.Delete(ctx, u.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
	}
}

func untyped(t testing.TB, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	must(t, err)
	u := &unstructured.Unstructured{Object: content}
	if u.GetKind() == "" {
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		must(t, err)
		u.SetGroupVersionKind(kinds[0])
	}
	return u
}

// api is the administrator's client for the kind of object, in its namespace where it has one.
func (c *cluster) api(u *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	if u.GetNamespace() == "" {
		return c.objects.Resource(plural)
	}
	return c.objects.Resource(plural).Namespace(u.GetNamespace())
}

// install makes what the package generates. The server obeys it a little later.
func (c *cluster) install(t testing.TB) {
	t.Helper()
	objects, err := nodeauth.Objects(c.options)
	must(t, err)
	c.create(t, objects...)
}

// guard installs what the package generates and waits until the policy bites, which it shows by a dry run.
func (c *cluster) guard(t testing.TB) {
	t.Helper()
	c.install(t)
	stranger := c.client(t, c.token(t, agents, nil))
	eventually(t, func() string {
		_, err := stranger.Resource(leases).Namespace(c.namespace).Create(t.Context(), lease("agent-nobody"), dryCreate)
		return c.denial(err, "must name one of each")
	})
}

var (
	dry       = []string{metav1.DryRunAll}
	dryCreate = metav1.CreateOptions{DryRun: dry}
)

// denial says what is wrong with a refusal that should be the policy's, with a text in it: 403, with the policy's name as its cause.
func (c *cluster) denial(err error, text string) string {
	var status *apierrors.StatusError
	switch by := fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%[1]s' denied request: ", c.options.Name); {
	case err == nil:
		return "the write is accepted, want it denied by the policy"
	case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), by):
		return fmt.Sprintf("got %v, want 403 with %q", err, by)
	case !strings.Contains(err.Error(), text):
		return fmt.Sprintf("got %v, want it to say %q", err, text)
	case !errors.As(err, &status) || status.ErrStatus.Code != 403:
		return fmt.Sprintf("got %v, want a status with the code 403", err)
	}
	return ""
}

// token asks for a token of a service account of the namespace, bound to an object or to nothing.
func (c *cluster) token(t testing.TB, account string, bound *authenticationv1.BoundObjectReference, audiences ...string) string {
	t.Helper()
	answer, err := c.admin.CoreV1().ServiceAccounts(c.namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: ptr.To(int64(600)), BoundObjectRef: bound},
	}, metav1.CreateOptions{})
	must(t, err)
	return answer.Status.Token
}

func (c *cluster) config(token string) *rest.Config {
	config := rest.AnonymousClientConfig(c.env.Config())
	config.BearerToken = token
	return config
}

func (c *cluster) client(t testing.TB, token string) dynamic.Interface {
	t.Helper()
	_, objects := clients(t, c.config(token))
	return objects
}

// agent is a node with its pod and the pod's token.
type agent struct {
	node   *corev1.Node
	pod    *corev1.Pod
	token  string
	client dynamic.Interface
}

// agent makes a node and an agent's pod on it.
func (c *cluster) agent(t testing.TB, name string) *agent {
	t.Helper()
	return c.agentOf(t, agents, c.node(t, name))
}

func (c *cluster) node(t testing.TB, name string) *corev1.Node {
	t.Helper()
	node, err := c.env.CreateNode(t.Context(), c.namespace+"-"+name)
	must(t, err)
	return node
}

func (c *cluster) agentOf(t testing.TB, account string, node *corev1.Node) *agent {
	t.Helper()
	a := &agent{node: node, pod: c.pod(t, account, account+"-on-"+node.Name, node.Name)}
	a.token = c.token(t, account, bound(a.pod))
	a.client = c.client(t, a.token)
	return a
}

func (c *cluster) pod(t testing.TB, account, name, node string) *corev1.Pod {
	t.Helper()
	pod, err := c.admin.CoreV1().Pods(c.namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: account, AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To(int64(0)),
			Containers: []corev1.Container{{Name: "agent", Image: "example.com/agent"}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	return pod
}

func bound(pod *corev1.Pod) *authenticationv1.BoundObjectReference {
	return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
}

// has gives a node its objects, made by the administrator.
func (c *cluster) has(t testing.TB, node *corev1.Node) {
	t.Helper()
	c.create(t, shadow(node), c.lease(node))
}

func (c *cluster) lease(node *corev1.Node) *unstructured.Unstructured {
	l := lease("agent-" + node.Name)
	l.SetNamespace(c.namespace)
	return l
}

func lease(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": name},
	}}
}

// shadow is the custom object of a node, owned by it.
func shadow(node *corev1.Node) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": shadows.GroupVersion().String(), "kind": "Shadow",
		"metadata": map[string]any{"name": node.Name, "ownerReferences": []any{owner(node.Name, string(node.UID))}},
	}}
}

func owner(name, uid string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
}
