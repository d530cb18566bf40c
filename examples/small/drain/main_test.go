// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/testenv"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// TestRun empties a Node of an API server, and says which Node there is not.
func TestRun(t *testing.T) {
	env := shared.Env(t)
	t.Setenv("KUBECONFIG", env.Kubeconfig())
	node, err := env.CreateNode(t.Context(), env.Namespace(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), node.Name); err != nil {
		t.Errorf("got error %v, want the node drained", err)
	}
	client, err := kubernetes.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	if node, err = client.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{}); err != nil || !node.Spec.Unschedulable {
		t.Errorf("got error %v and unschedulable %t, want the node cordoned", err, node.Spec.Unschedulable)
	}
	if err := run(t.Context(), "no-such-node"); !errors.Is(err, drain.ErrNodeNotFound) {
		t.Errorf("got error %v, want ErrNodeNotFound", err)
	}
}
