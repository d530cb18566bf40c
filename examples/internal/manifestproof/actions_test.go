// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	rollout "github.com/belayproject/belay/rollout/v1alpha1"
)

// An action is tried by somebody, as a dry run: what is there stays as it is.
type action func(ctx context.Context, s *stage, who *actor) error

var (
	dry       = []string{metav1.DryRunAll}
	nodeKind  = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	policyGVR = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
)

// patch tries a merge patch of an object without a namespace, or of a subresource of it.
func patch(kind schema.GroupVersionResource, name, data string, sub ...string) action {
	return func(ctx context.Context, _ *stage, who *actor) error {
		_, err := who.objects.Resource(kind).Patch(ctx, name, types.MergePatchType, []byte(data), metav1.PatchOptions{DryRun: dry}, sub...)
		return err
	}
}

func get(kind schema.GroupVersionResource, name string) action {
	return func(ctx context.Context, _ *stage, who *actor) error {
		_, err := who.objects.Resource(kind).Get(ctx, name, metav1.GetOptions{})
		return err
	}
}

func list(kind schema.GroupVersionResource) action {
	return func(ctx context.Context, _ *stage, who *actor) error {
		_, err := who.objects.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	}
}

func remove(kind schema.GroupVersionResource, name string) action {
	return func(ctx context.Context, _ *stage, who *actor) error {
		return who.objects.Resource(kind).Delete(ctx, name, metav1.DeleteOptions{DryRun: dry})
	}
}

// copied tries to create what is there under another name.
func copied(kind schema.GroupVersionResource, from, name string) action {
	return func(ctx context.Context, s *stage, who *actor) error {
		found, err := s.objects.Resource(kind).Get(ctx, from, metav1.GetOptions{})
		if err != nil {
			return err
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": found.Object["spec"]}}
		u.SetGroupVersionKind(found.GroupVersionKind())
		u.SetName(name)
		u.SetOwnerReferences(found.GetOwnerReferences())
		_, err = who.objects.Resource(kind).Create(ctx, u, metav1.CreateOptions{DryRun: dry})
		return err
	}
}

// updated tries to write what is there.
func updated(kind schema.GroupVersionResource, name string) action {
	return func(ctx context.Context, s *stage, who *actor) error {
		found, err := s.objects.Resource(kind).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = who.objects.Resource(kind).Update(ctx, found, metav1.UpdateOptions{DryRun: dry})
		return err
	}
}

// condition tries to set a condition of a Node, as package configsync/kube does.
func condition(node, kind string) action {
	return func(ctx context.Context, _ *stage, who *actor) error {
		data := `{"status":{"conditions":[{"type":"` + kind + `","status":"True","reason":"Test","message":"of a test"}]}}`
		_, err := who.core.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(data), metav1.PatchOptions{DryRun: dry}, "status")
		return err
	}
}

// renewed tries to write a Lease, which is made by the administrator where it is not there.
func renewed(namespace, name string) action {
	return func(ctx context.Context, s *stage, who *actor) error {
		lease, err := s.admin.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			lease, err = s.admin.CoordinationV1().Leases(namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		}
		if err != nil {
			return err
		}
		lease.Spec.HolderIdentity = new("somebody")
		_, err = who.core.CoordinationV1().Leases(namespace).Update(ctx, lease, metav1.UpdateOptions{DryRun: dry})
		return err
	}
}

func evicted(pod string) action {
	return func(ctx context.Context, _ *stage, who *actor) error {
		return who.core.PolicyV1().Evictions(agentNamespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: agentNamespace}, DeleteOptions: &metav1.DeleteOptions{DryRun: dry},
		})
	}
}

// powers are what would make more of a caller than its roles do.
func powers() map[string]action {
	return map[string]action{
		"run a command in a pod": func(ctx context.Context, _ *stage, who *actor) error {
			return who.core.CoreV1().RESTClient().Post().Namespace(agentNamespace).Resource("pods").Name("agent-"+otherNode).SubResource("exec").
				Param("command", "true").Do(ctx).Error()
		},
		"read a Secret": func(ctx context.Context, _ *stage, who *actor) error {
			_, err := who.core.CoreV1().Secrets(systemNamespace).Get(ctx, "x", metav1.GetOptions{})
			return err
		},
		"make a token of the agents' account": func(ctx context.Context, _ *stage, who *actor) error {
			_, err := who.core.CoreV1().ServiceAccounts(agentNamespace).CreateToken(ctx, agentAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{DryRun: dry})
			return err
		},
		"make a pod that runs as an agent": func(ctx context.Context, _ *stage, who *actor) error {
			_, err := who.core.CoreV1().Pods(agentNamespace).Create(ctx, agentPod("another", otherNode), metav1.CreateOptions{DryRun: dry})
			return err
		},
		"change the policy": patch(policyGVR, "belay-agent", `{"spec":{"failurePolicy":"Ignore"}}`),
		"give itself a role": func(ctx context.Context, _ *stage, who *actor) error {
			_, err := who.core.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "mine"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			}, metav1.CreateOptions{DryRun: dry})
			return err
		},
		"act as somebody else": func(ctx context.Context, _ *stage, who *actor) error {
			return who.core.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes").SetHeader("Impersonate-User", "admin").Do(ctx).Error()
		},
	}
}

// actions are those of the matrix by name.
func actions() map[string]action {
	const cordon, taint = `{"spec":{"unschedulable":true}}`, `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`
	shadows, rollouts, ledgers := rollout.NodeShadowsResource, rollout.RolloutsResource, rollout.DisruptionLedgersResource
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	all := powers()
	for name, do := range map[string]action{
		"read the NodeShadow of its node":          get(shadows, ownNode),
		"report in the NodeShadow of its node":     patch(shadows, ownNode, "{}", "status"),
		"report in the NodeShadow of another node": patch(shadows, otherNode, "{}", "status"),
		"order in the NodeShadow of its node":      patch(shadows, ownNode, "{}"),
		"make a NodeShadow":                        copied(shadows, otherNode, "matrix-c"),
		"delete the NodeShadow of another node":    remove(shadows, otherNode),
		"list all NodeShadows":                     list(shadows),
		"read the NodeConfig of its node":          get(nodeConfigs, ownNode),
		"read a Revision":                          get(rollout.RevisionsResource, "matrix"),
		"read the config that a node is told to use": func(ctx context.Context, _ *stage, who *actor) error {
			_, err := who.core.CoreV1().ConfigMaps(configNamespace).Get(ctx, "matrix", metav1.GetOptions{})
			return err
		},
		"report in the NodeConfig of its node":              patch(nodeConfigs, ownNode, "{}", "status"),
		"report in the NodeConfig of another node":          patch(nodeConfigs, otherNode, "{}", "status"),
		"name another config in the NodeConfig of its node": patch(nodeConfigs, ownNode, "{}"),
		"renew the Lease of its node's agent":               renewed(agentNamespace, ownNode),
		"renew the Lease of another node's agent":           renewed(agentNamespace, otherNode),
		"delete the Lease of another node's agent": func(ctx context.Context, _ *stage, who *actor) error {
			return who.core.CoordinationV1().Leases(agentNamespace).Delete(ctx, otherNode, metav1.DeleteOptions{DryRun: dry})
		},
		"take the Lease of a leader":   renewed(systemNamespace, "belay-rollout-default"),
		"set ConfigOK of its Node":     condition(ownNode, "ConfigOK"),
		"set ConfigOK of another Node": condition(otherNode, "ConfigOK"),
		"set Ready of its Node":        condition(ownNode, "Ready"),
		"make an event about its Node": told(ownNode),
		"cordon another node":          patch(nodeKind, otherNode, cordon),
		"taint its own node":           patch(nodeKind, ownNode, taint),
		"delete a Node":                remove(nodeKind, otherNode),
		"evict a pod of another node":  evicted("agent-" + otherNode),
		"delete a pod of another node": func(ctx context.Context, _ *stage, who *actor) error {
			return who.core.CoreV1().Pods(agentNamespace).Delete(ctx, "agent-"+otherNode, metav1.DeleteOptions{DryRun: dry})
		},
		"list all pods":                       list(pods),
		"read the ledger":                     get(ledgers, "matrix"),
		"write the ledger":                    updated(ledgers, "matrix"),
		"list all ledgers":                    list(ledgers),
		"pause, abort or roll back a Rollout": patch(rollouts, "matrix", "{}"),
		"write the status of a Rollout":       patch(rollouts, "matrix", "{}", "status"),
		"make a Rollout":                      copied(rollouts, "matrix", "another"),
		"make a Revision": func(ctx context.Context, _ *stage, who *actor) error {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": rollout.GroupVersion.String(), "kind": "Revision", "metadata": map[string]any{"name": "v9"}}}
			_, err := who.objects.Resource(rollout.RevisionsResource).Create(ctx, u, metav1.CreateOptions{DryRun: dry})
			return err
		},
	} {
		all[name] = do
	}
	return all
}
