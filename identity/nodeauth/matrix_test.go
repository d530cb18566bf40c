// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/identity/nodeauth"
)

// A write is one way to change an object, which is tried as a dry run.
type write struct {
	name   string
	status bool // for kinds with a status subresource only
	typed  bool // for kinds that are built in only
	absent bool // of an object that does not exist yet
	never  bool // denied for the own node too: it is for more than one object, or for one whose name is not known
	do     func(ctx context.Context, objects dynamic.ResourceInterface, o *unstructured.Unstructured) error
}

func writes() []write {
	patch := func(kind types.PatchType, data string, subresources ...string) func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) error {
		return func(ctx context.Context, objects dynamic.ResourceInterface, o *unstructured.Unstructured) error {
			_, err := objects.Patch(ctx, o.GetName(), kind, []byte(data), metav1.PatchOptions{DryRun: dry}, subresources...)
			return err
		}
	}
	apply := func(subresources ...string) func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) error {
		return func(ctx context.Context, objects dynamic.ResourceInterface, o *unstructured.Unstructured) error {
			_, err := objects.Apply(ctx, o.GetName(), labelled(o), metav1.ApplyOptions{DryRun: dry, FieldManager: "test", Force: true}, subresources...)
			return err
		}
	}
	update := func(subresources ...string) func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) error {
		return func(ctx context.Context, objects dynamic.ResourceInterface, o *unstructured.Unstructured) error {
			found, err := objects.Get(ctx, o.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			_, err = objects.Update(ctx, labelled(found), metav1.UpdateOptions{DryRun: dry}, subresources...)
			return err
		}
	}
	return []write{
		{name: "create", absent: true, do: func(ctx context.Context, objects dynamic.ResourceInterface, o *unstructured.Unstructured) error {
			_, err := objects.Create(ctx, o, dryCreate)
			return err
		}},
		{name: "create by apply", absent: true, do: apply()},
		{name: "generateName", absent: true, never: true, do: func(ctx context.Context, objects dynamic.ResourceInterface, o *unstructured.Unstructured) error {
			o = o.DeepCopy()
			o.SetGenerateName(o.GetName())
			o.SetName("")
			_, err := objects.Create(ctx, o, dryCreate)
			return err
		}},
		{name: "update", do: update()},
		{name: "merge patch", do: patch(types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`)},
		{name: "empty merge patch", do: patch(types.MergePatchType, `{}`)},
		{name: "strategic patch", typed: true, do: patch(types.StrategicMergePatchType, `{"metadata":{"labels":{"a":"b"}}}`)},
		{name: "JSON patch", do: patch(types.JSONPatchType, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`)},
		{name: "apply", do: apply()},
		{name: "update of status", status: true, do: update("status")},
		{name: "merge patch of status", status: true, do: patch(types.MergePatchType, `{"status":{"a":"b"}}`, "status")},
		{name: "JSON patch of status", status: true, do: patch(types.JSONPatchType, `[{"op":"add","path":"/status","value":{"a":"b"}}]`, "status")},
		{name: "apply of status", status: true, do: apply("status")},
		{name: "delete", do: func(ctx context.Context, objects dynamic.ResourceInterface, o *unstructured.Unstructured) error {
			return objects.Delete(ctx, o.GetName(), metav1.DeleteOptions{DryRun: dry})
		}},
		{name: "deletecollection of one", do: deleteCollection("metadata.name=")},
		{name: "deletecollection of all", never: true, do: deleteCollection("")},
	}
}

// deleteCollection deletes all objects, or with a selector the one whose name is put behind it.
func deleteCollection(selector string) func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) error {
	return func(ctx context.Context, objects dynamic.ResourceInterface, o *unstructured.Unstructured) error {
		var list metav1.ListOptions
		if selector != "" {
			list.FieldSelector = selector + o.GetName()
		}
		return objects.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dry}, list)
	}
}

// labelled is the object as it came, and something more.
func labelled(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetLabels(map[string]string{"a": "b"})
	return o
}

// A kind is one of the kinds of objects in the matrix.
type kind struct {
	name          string
	status, typed bool
	of            func(node *corev1.Node) *unstructured.Unstructured
	objects       func(client dynamic.Interface) dynamic.ResourceInterface
	foreign       string // what the refusal of a foreign one says, with the own node, its foreign object and the own one
}

func (c *cluster) kinds() []kind {
	shadowsOf := func(version string) kind {
		gvr := shadows
		gvr.Version = version
		return kind{
			name: "Shadow " + version, status: true,
			of: func(node *corev1.Node) *unstructured.Unstructured {
				s := shadow(node)
				s.SetAPIVersion(gvr.GroupVersion().String())
				return s
			},
			objects: func(client dynamic.Interface) dynamic.ResourceInterface { return client.Resource(gvr) },
			foreign: `shadows.nodeauth.test.belay.dev "%[2]s" does not belong to node "%[1]s": the name must be "%[3]s"`,
		}
	}
	return []kind{shadowsOf("v1"), shadowsOf("v2"), {
		name: "Lease", typed: true, of: c.lease,
		objects: func(client dynamic.Interface) dynamic.ResourceInterface {
			return client.Resource(leases).Namespace(c.namespace)
		},
		foreign: `leases.coordination.k8s.io in ` + c.namespace + ` "%[2]s" does not belong to node "%[1]s": the name must be "%[3]s"`,
	}}
}

// TestAgentWritesItsOwnNodeOnly covers R-AU-01 and R-RO-06: the matrix of every verb over every kind, for the own node and another one; with a
// policy, without it by the same token, and beside it as a service account with the same rights that the policy is not for.
// S-CS-08.
func TestAgentWritesItsOwnNodeOnly(t *testing.T) {
	c := newCluster(t)
	c.account(t, "free")
	m := &matrix{c: c, here: c.agent(t, "a"), there: c.node(t, "b"), fresh: c.agent(t, "c"), newer: c.node(t, "d")}
	c.has(t, m.here.node)
	c.has(t, m.there)
	m.free = c.agentOf(t, "free", m.here.node)
	m.unguarded(t, c.kinds())
	c.guard(t)
	m.guarded(t, c.kinds())
}

// TestNodeUserWritesItsOwnNodeOnly covers R-AU-01: the same for a caller with a kubelet's certificate, and the kinds that can be guarded for it.
func TestNodeUserWritesItsOwnNodeOnly(t *testing.T) {
	c := newCluster(t)
	c.account(t, "free")
	c.options = nodeauth.Options{Name: c.namespace, NodeUsers: true, Resources: c.options.Resources[:1]}
	m := &matrix{c: c, here: c.nodeUser(t, "a"), there: c.node(t, "b"), fresh: c.nodeUser(t, "c"), newer: c.node(t, "d")}
	c.has(t, m.here.node)
	c.has(t, m.there)
	m.free = c.agentOf(t, "free", m.here.node)
	kinds := c.kinds()[:2]
	m.unguarded(t, kinds)
	c.install(t)
	probe := nodeauth.TryPatch(m.here.client.Resource(shadows), m.there.Name, "status")
	eventually(t, func() string { return c.denial(probe(t.Context()), "does not belong to node") })
	m.guarded(t, kinds)
}

// nodeUser makes a node and a caller with its kubelet's name, who has every right that the accounts have.
func (c *cluster) nodeUser(t *testing.T, name string) *agent {
	t.Helper()
	a := &agent{node: c.node(t, name)}
	user := "system:node:" + a.node.Name
	_, a.client = clients(t, c.env.User(t, user, "system:nodes"))
	c.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: a.node.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.namespace + "-wide-" + agents},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	return a
}

// A matrix is who writes in one. The nodes here and there have their objects, those of fresh and newer have none.
type matrix struct {
	c                 *cluster
	here, fresh, free *agent
	there, newer      *corev1.Node
}

// cells calls for each write of each kind, with the caller and the other node.
func (m *matrix) cells(t *testing.T, kinds []kind, cell func(t *testing.T, k kind, w write, caller *agent, other *corev1.Node)) {
	t.Helper()
	for _, k := range kinds {
		for _, w := range writes() {
			if w.status && !k.status || w.typed && !k.typed {
				continue
			}
			caller, other := m.here, m.there
			if w.absent {
				caller, other = m.fresh, m.newer
			}
			t.Run(k.name+"/"+w.name, func(t *testing.T) { cell(t, k, w, caller, other) })
		}
	}
}

func (m *matrix) guarded(t *testing.T, kinds []kind) {
	t.Helper()
	m.cells(t, kinds, func(t *testing.T, k kind, w write, caller *agent, other *corev1.Node) {
		m.c.cell(t, k, w, m.free, caller, other)
	})
}

// unguarded wants every write accepted of the callers themselves. A right takes a while to be known, like a policy.
func (m *matrix) unguarded(t *testing.T, kinds []kind) {
	t.Helper()
	t.Run("unguarded", func(t *testing.T) {
		m.cells(t, kinds, func(t *testing.T, k kind, w write, caller *agent, other *corev1.Node) {
			for _, node := range []*corev1.Node{caller.node, other} {
				o := k.of(node)
				eventually(t, func() string {
					if err := w.do(t.Context(), k.objects(caller.client), o); err != nil {
						return fmt.Sprintf("%s by %s: got %v, want it accepted", o.GetName(), caller.node.Name, err)
					}
					return ""
				})
			}
		})
	})
}

// cell tries one write of one kind: of the objects of both nodes by the free agent, of another node's by the caller, and of its own.
func (c *cluster) cell(t *testing.T, k kind, w write, free, caller *agent, other *corev1.Node) {
	t.Helper()
	own, foreign := k.of(caller.node), k.of(other)
	try := func(client dynamic.Interface, o *unstructured.Unstructured) error {
		return w.do(t.Context(), k.objects(client), o)
	}
	for _, o := range []*unstructured.Unstructured{own, foreign} {
		if err := try(free.client, o); err != nil {
			t.Errorf("%s without the policy: got %v, want it accepted: the refusals below would prove nothing", o.GetName(), err)
		}
	}
	said := fmt.Sprintf(k.foreign, caller.node.Name, foreign.GetName(), own.GetName())
	if w.never {
		said = fmt.Sprintf(`does not belong to node "%s": the name must be "%s"`, caller.node.Name, own.GetName())
	}
	if fault := c.denial(try(caller.client, foreign), said); fault != "" {
		t.Errorf("another node's: %s", fault)
	}
	switch err := try(caller.client, own); {
	case !w.never && err != nil:
		t.Errorf("its own: got %v, want it accepted", err)
	case w.never && c.denial(err, said) != "":
		t.Errorf("its own: %s", c.denial(err, said))
	}
}

// TestOwnerMustBeTheOwnNode covers R-AU-07 for what an agent makes itself: neither before nor after a write the object has another
// owner of kind Node than the caller's node.
func TestOwnerMustBeTheOwnNode(t *testing.T) {
	c := newCluster(t)
	a, b := c.agent(t, "a"), c.node(t, "b")
	c.guard(t)
	own, other := owner(a.node.Name, string(a.node.UID)), owner(b.Name, string(b.UID))
	alien := owner(a.node.Name, "11111111-1111-1111-1111-111111111111")
	namesake := map[string]any{"apiVersion": "example.com/v1", "kind": "Node", "name": "x", "uid": string(b.UID)}
	for _, row := range []struct {
		name   string
		owners []any
		ok     bool
	}{
		{"its own", []any{own}, true},
		{"its own and one of another kind", []any{own, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}}, true},
		{"its own and a Node of another group", []any{namesake, own}, true},
		{"none", nil, false},
		{"another node", []any{other}, false},
		{"its own name with another UID", []any{alien}, false},
		{"its own and another", []any{own, other}, false},
		{"a Node of another group with its UID", []any{map[string]any{"apiVersion": "example.com/v1", "kind": "Node", "name": a.node.Name, "uid": string(a.node.UID)}}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := shadow(a.node)
			o.SetOwnerReferences(nil)
			if row.owners != nil {
				must(t, unstructured.SetNestedSlice(o.Object, row.owners, "metadata", "ownerReferences"))
			}
			says := fmt.Sprintf(`shadows.nodeauth.test.belay.dev "%s" does not belong to this node "%[1]s": before and after the write it must have one `+
				`owner of kind Node, the one with the UID %s`, a.node.Name, a.node.UID)
			expect := func(what string, err error) {
				if fault := c.denial(err, says); row.ok && err != nil || !row.ok && fault != "" {
					t.Errorf("%s: got %v, want accepted: %t", what, err, row.ok)
				}
			}
			_, err := a.client.Resource(shadows).Create(t.Context(), o, dryCreate)
			expect("create", err)
			c.create(t, o) // as it is, by the administrator
			expect("delete", a.client.Resource(shadows).Delete(t.Context(), o.GetName(), metav1.DeleteOptions{DryRun: dry}))
			_, err = a.client.Resource(shadows).Patch(t.Context(), o.GetName(), types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`), metav1.PatchOptions{DryRun: dry})
			if fault := c.denial(err, says); fault != "" {
				t.Errorf("taking the owner away: %s", fault)
			}
			adopt := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"ownerReferences": []any{own}}}}
			data, err := runtime.Encode(unstructured.UnstructuredJSONScheme, withKind(adopt))
			must(t, err)
			_, err = a.client.Resource(shadows).Patch(t.Context(), o.GetName(), types.MergePatchType, data, metav1.PatchOptions{DryRun: dry})
			expect("adopting it", err)
		})
	}
}

func withKind(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetGroupVersionKind(shadows.GroupVersion().WithKind("Shadow"))
	return u
}
