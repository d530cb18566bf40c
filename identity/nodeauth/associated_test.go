// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/identity/nodeauth"
)

// constrained is the first minor release whose API server has constrained impersonation without a feature gate.
const constrained = 36

// everyReadIsRefused is what an older API server does: the opt-in gives no right that it knows of.
func everyReadIsRefused(t *testing.T, clients map[string]kubernetes.Interface, own metav1.ListOptions) {
	t.Helper()
	for who, client := range clients {
		if _, err := client.CoreV1().Pods("").List(t.Context(), own); !apierrors.IsForbidden(err) {
			t.Errorf("%s: reading pods gave %s, want 403 before Kubernetes 1.%d", who, errorText(err), constrained)
		}
	}
}

// TestAssociatedNodeReadsItsOwnPods covers R-AU-09: with the opt-in an agent reads the pods of its own node, and no others; it has no right of
// its own to read any.
func TestAssociatedNodeReadsItsOwnPods(t *testing.T) {
	c := newCluster(t)
	c.narrow(t)
	a, b := c.agentOf(t, "narrow", c.node(t, "a")), c.agentOf(t, "narrow", c.node(t, "b"))
	config := c.config(a.token)
	as, _ := clients(t, nodeauth.AssociatedNode(config, a.node.Name))
	plain, _ := clients(t, config)
	foreign, _ := clients(t, nodeauth.AssociatedNode(config, b.node.Name))
	if config.Impersonate.UserName != "" {
		t.Fatal("the config that was given is changed")
	}
	of := func(node string) metav1.ListOptions {
		return metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}
	}
	if c.env.Minor(t) < constrained {
		all := map[string]kubernetes.Interface{"as its node": as, "as itself": plain, "as another node": foreign}
		everyReadIsRefused(t, all, of(a.node.Name))
		return
	}
	eventually(t, func() string {
		list, err := as.CoreV1().Pods("").List(t.Context(), of(a.node.Name))
		if err != nil || len(list.Items) != 1 || list.Items[0].UID != a.pod.UID {
			return "its own pods are not listed: " + errorText(err)
		}
		_, err = as.CoreV1().Pods(c.namespace).Get(t.Context(), a.pod.Name, metav1.GetOptions{})
		if err != nil {
			return "its own pod is not read: " + err.Error()
		}
		return ""
	})
	watch, err := as.CoreV1().Pods("").Watch(t.Context(), of(a.node.Name))
	must(t, err)
	watch.Stop()

	for what, read := range map[string]func() error{
		"the pods of another node": func() error { _, err := as.CoreV1().Pods("").List(t.Context(), of(b.node.Name)); return err },
		"all pods":                 func() error { _, err := as.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); return err },
		"all pods of a namespace": func() error {
			_, err := as.CoreV1().Pods(c.namespace).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"a watch on all pods": func() error { _, err := as.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{}); return err },
		"a pod of another node": func() error {
			_, err := as.CoreV1().Pods(c.namespace).Get(t.Context(), b.pod.Name, metav1.GetOptions{})
			return err
		},
		"its own pods without the opt-in": func() error { _, err := plain.CoreV1().Pods("").List(t.Context(), of(a.node.Name)); return err },
		"as another node":                 func() error { _, err := foreign.CoreV1().Pods("").List(t.Context(), of(b.node.Name)); return err },
		"a Secret": func() error {
			_, err := as.CoreV1().Secrets(c.namespace).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"a write to its own pod": func() error {
			return as.CoreV1().Pods(c.namespace).Delete(t.Context(), a.pod.Name, metav1.DeleteOptions{DryRun: dry})
		},
		"a write to its own Node": func() error {
			_, err := as.CoreV1().Nodes().Patch(t.Context(), a.node.Name, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: dry}, "status")
			return err
		},
	} {
		if err := read(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %s, want 403", what, errorText(err))
		}
	}
}
