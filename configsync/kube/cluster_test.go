// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kube/internal/matrix"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
)

var shared testenv.Shared

func TestMain(m *testing.M) {
	// The second one pauses after an error, by a time that it keeps for the whole process: an error in a bubble, whose time is another, would hold up other tests.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // it has no other switch
	os.Exit(shared.Main(m))
}

// cluster is a control plane with one node, and the credentials of that node's agent: those rights that package kube names, and no
// other.
type cluster struct {
	env    *testenv.Env
	admin  *kubernetes.Clientset
	all    dynamic.Interface // of the administrator
	agent  *rest.Config
	client dynamic.Interface // of the agent

	node              string
	namespace, hidden string // one that the agent may read, one that it may not

	mu   sync.Mutex
	made map[string]map[string]matrix.Payload // by digest and key; guarded by mu
}

// newCluster makes a node on the shared control plane.
func newCluster(t *testing.T) *cluster { return clusterOn(t, shared.Env(t)) }

func clusterOn(t *testing.T, env *testenv.Env) *cluster {
	t.Helper()
	must(t, kube.Install(deadline(t), env.Config()))
	c := &cluster{env: env, made: map[string]map[string]matrix.Payload{}, namespace: env.Namespace(t), hidden: env.Namespace(t)}
	c.node = "n-" + c.namespace
	c.admin = kubernetes.NewForConfigOrDie(env.Config())
	c.all = clientFor(t, env.Config())
	_, err := env.CreateNode(deadline(t), c.node)
	must(t, err)
	c.agent = env.User(t, "agent-"+c.node)
	c.client = clientFor(t, c.agent)
	rules := append(append(kube.NodeConfigRules(c.node), kube.NodeSourceRules(c.node)...), kube.NodeConditionRules(c.node)...)
	c.grant(t, "agent-"+c.node, rules...)
	c.grantIn(t, c.namespace, "agent-"+c.node, kube.ConfigMapRules()...)
	c.granted(t, "agent-"+c.node)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func clientFor(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := kube.NewClient(config, nil)
	must(t, err)
	return client
}

// grant gives user the rules on cluster-scoped objects. The authorizer learns of it a moment later.
func (c *cluster) grant(t *testing.T, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	roles := c.admin.RbacV1()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	_, err := roles.ClusterRoles().Create(deadline(t), role, metav1.CreateOptions{})
	must(t, err)
	_, err = roles.ClusterRoleBindings().Create(deadline(t), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subject(user),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
	}, metav1.CreateOptions{})
	must(t, err)
}

// granted waits until the authorizer knows what grant has given to the user, who may read the NodeConfig with it. It asks with a client of its own, so that
// nobody counts what it asks.
func (c *cluster) granted(t *testing.T, user string, groups ...string) {
	t.Helper()
	reader := clientFor(t, c.env.User(t, user, groups...))
	eventually(t, "the rights of "+user, func() error {
		_, err := reader.Resource(v1alpha1.NodeConfigsResource).Get(deadline(t), c.node, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// grantIn gives user the rules in a namespace, and waits until the authorizer knows.
func (c *cluster) grantIn(t *testing.T, namespace, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	c.bindIn(t, namespace, user, rules...)
	name := "absent"
	if names := rules[0].ResourceNames; len(names) > 0 {
		name = names[0]
	}
	reader := kubernetes.NewForConfigOrDie(c.env.User(t, user))
	eventually(t, "the rights of "+user, func() error {
		_, err := reader.CoreV1().ConfigMaps(namespace).Get(deadline(t), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

func (c *cluster) bindIn(t *testing.T, namespace, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	roles := c.admin.RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	_, err := roles.Roles(namespace).Create(deadline(t), role, metav1.CreateOptions{})
	must(t, err)
	_, err = roles.RoleBindings(namespace).Create(deadline(t), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subject(user),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
	}, metav1.CreateOptions{})
	must(t, err)
}

func subject(user string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
}

// eventually asks until done returns nil, and ends the test if that takes a minute.
func eventually(t *testing.T, what string, done func() error) {
	t.Helper()
	pace := testproc.NewPace()
	end := time.After(time.Minute)
	for {
		err := done()
		if err == nil {
			return
		}
		select {
		case <-pace.Next():
		case <-end:
			t.Fatalf("waiting for %s: %v", what, err)
		}
	}
}

// nodeConfig makes the source the NodeConfig's of the node; "" leaves it out.
func (c *cluster) assignNodeConfig(ctx context.Context, source string) error {
	if source == "" {
		source = "null"
	}
	patch := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},"spec":{"source":%s}}`,
		v1alpha1.GroupVersion, v1alpha1.NodeConfigKind, c.node, source)
	client := c.all.Resource(v1alpha1.NodeConfigsResource)
	_, err := client.Get(ctx, c.node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, decoded(patch), metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	// The source is replaced, not merged.
	replace := fmt.Sprintf(`[{"op":"add","path":"/spec","value":{"source":%s}}]`, source)
	_, err = client.Patch(ctx, c.node, types.JSONPatchType, []byte(replace), metav1.PatchOptions{})
	return err
}

// annotate makes the source the annotation of the node; "" removes it.
func (c *cluster) annotate(ctx context.Context, source string) error {
	value := any(source)
	if source == "" {
		value = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{kube.SourceAnnotation: value}}})
	if err != nil {
		return err
	}
	_, err = c.admin.CoreV1().Nodes().Patch(ctx, c.node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// text is the text of a payload: one that decodes strictly, but for the undecodable one.
func text(p matrix.Payload) string {
	line := "payload: " + string(p) + "\n"
	if p == matrix.Undecodable {
		return line + "unknownField: true\n"
	}
	return line
}

func (c *cluster) configMap(m matrix.ConfigMap) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Namespace: c.namespace}, Immutable: &m.Immutable, Data: map[string]string{}}
	if m.Hidden {
		cm.Namespace = c.hidden
	}
	for key, p := range m.Payloads {
		cm.Data[key] = text(p)
	}
	if m.Brief {
		maps.Copy(cm.Data, brief())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[configsync.DigestOf(cm.Data)] = maps.Clone(m.Payloads)
	return cm
}

// Create makes a ConfigMap.
func (c *cluster) Create(ctx context.Context, m matrix.ConfigMap) (matrix.Ref, error) {
	cm := c.configMap(m)
	made, err := c.admin.CoreV1().ConfigMaps(cm.Namespace).Create(ctx, cm, metav1.CreateOptions{})
	return refTo(made), err
}

// Edit replaces the data of a ConfigMap.
func (c *cluster) Edit(ctx context.Context, m matrix.ConfigMap) (matrix.Ref, error) {
	cm := c.configMap(m)
	made, err := c.admin.CoreV1().ConfigMaps(cm.Namespace).Update(ctx, cm, metav1.UpdateOptions{})
	return refTo(made), err
}

// Delete removes a ConfigMap.
func (c *cluster) Delete(ctx context.Context, name string) error {
	return c.admin.CoreV1().ConfigMaps(c.namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

func refTo(cm *corev1.ConfigMap) matrix.Ref {
	if cm == nil {
		return matrix.Ref{}
	}
	return matrix.Ref{Namespace: cm.Namespace, Name: cm.Name, UID: string(cm.UID), Digest: configsync.DigestOf(cm.Data)}
}

// payloadOf reads back which payload an object holds.
func payloadOf(o configsync.Object, key string) matrix.Payload {
	if key == "" {
		key = matrix.Key
	}
	line, _, _ := strings.Cut(o.Data[key], "\n")
	return matrix.Payload(strings.TrimPrefix(line, "payload: "))
}
