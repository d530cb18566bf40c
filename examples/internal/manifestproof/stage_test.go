// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	rolloutkube "github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	rollout "github.com/belayproject/belay/rollout/v1alpha1"
)

// The nodes of a stage. The agents are those of the own one.
const ownNode, otherNode = "matrix-a", "matrix-b"

var nodeConfigs = schema.GroupVersionResource{Group: "belay.dev", Version: "v1alpha1", Resource: "nodeconfigs"}

// A stage is two nodes with all that belongs to them, made by an administrator, and everybody who may want to write it.
type stage struct {
	*cluster
	actors map[string]*actor
}

func newStage(t *testing.T, c *cluster) *stage {
	t.Helper()
	s := &stage{cluster: c, actors: map[string]*actor{}}
	for _, name := range []string{ownNode, otherNode} {
		node, err := c.env.CreateNode(t.Context(), name)
		must(t, err)
		s.furnish(t, node)
	}
	ledger, err := rolloutkube.NewLedgerStore(c.objects, "matrix")
	must(t, err)
	_, err = ledger.Store(t.Context(), protocol.Ledger{}, "")
	must(t, err)
	s.make(t, rollout.RolloutsResource, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": rollout.GroupVersion.String(), "kind": "Rollout", "metadata": map[string]any{"name": "matrix"},
		"spec": map[string]any{"revision": map[string]any{"name": "v1", "digest": rollout.OpaqueDigest("v1")}, "selector": map[string]any{}},
	}})
	s.make(t, rollout.RevisionsResource, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": rollout.GroupVersion.String(), "kind": "Revision", "metadata": map[string]any{"name": "matrix"},
		"spec": map[string]any{"digest": rollout.OpaqueDigest("v1"), "opaque": "v1"},
	}})
	_, err = s.admin.CoreV1().ConfigMaps(configNamespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "matrix"}}, metav1.CreateOptions{})
	must(t, err)
	s.actors["agent in a pod"] = s.actor(t, s.podToken(t))
	s.actors["agent on a host"] = s.actor(t, c.env.User(t, "system:node:"+ownNode, "system:nodes"))
	s.actors["controller"] = s.actor(t, c.env.User(t, controllerUser, "system:serviceaccounts"))
	s.actors["viewer"] = s.person(t, "vera", "belay-viewer")
	s.actors["operator"] = s.person(t, "otto", "belay-viewer", "belay-operator")
	return s
}

func (s *stage) actor(t *testing.T, config *rest.Config) *actor {
	t.Helper()
	var a actor
	a.core, a.objects = clients(t, config)
	return &a
}

// furnish gives a node what it has in a fleet, all of it owned by the node, and a pod.
func (s *stage) furnish(t *testing.T, node *corev1.Node) {
	t.Helper()
	shadows, err := rolloutkube.NewShadows(s.objects)
	must(t, err)
	_, err = shadows.Create(t.Context(), protocol.NewShadow(node.Name, string(node.UID), protocol.Ledger{}))
	must(t, err)
	owners := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	config := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "belay.dev/v1alpha1", "kind": "NodeConfig"}}
	config.SetName(node.Name)
	config.SetOwnerReferences(owners)
	s.make(t, nodeConfigs, config)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node.Name, OwnerReferences: owners}}
	_, err = s.admin.CoordinationV1().Leases(agentNamespace).Create(t.Context(), lease, metav1.CreateOptions{})
	must(t, err)
	_, err = s.admin.CoreV1().Pods(agentNamespace).Create(t.Context(), agentPod("agent-"+node.Name, node.Name), metav1.CreateOptions{})
	must(t, err)
}

func (s *stage) make(t *testing.T, kind schema.GroupVersionResource, u *unstructured.Unstructured) {
	t.Helper()
	_, err := s.objects.Resource(kind).Create(t.Context(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	must(t, err)
}

func agentPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: agentAccount, TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{Name: "agent", Image: "example.com/agent"}},
		},
	}
}

// podToken is what the pod of the own node has.
func (s *stage) podToken(t *testing.T) *rest.Config {
	t.Helper()
	pod, err := s.admin.CoreV1().Pods(agentNamespace).Get(t.Context(), "agent-"+ownNode, metav1.GetOptions{})
	must(t, err)
	answer, err := s.admin.CoreV1().ServiceAccounts(agentNamespace).CreateToken(t.Context(), agentAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: new(int64(600)),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	config := rest.AnonymousClientConfig(s.env.Config())
	config.BearerToken = answer.Status.Token
	return config
}

// person is somebody to whom ClusterRoles are bound.
func (s *stage) person(t *testing.T, name string, roles ...string) *actor {
	t.Helper()
	for _, role := range roles {
		_, err := s.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	return s.actor(t, s.env.User(t, name, "people"))
}
