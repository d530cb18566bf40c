// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/testenv"
)

// soon bounds what takes an agent a few seconds on an idle machine.
const soon = 90 * time.Second

var (
	shared   testenv.Shared
	programs e2e.Programs
)

func TestMain(m *testing.M) { os.Exit(programs.Main(m, &shared)) }

// A world is one node of a real API server, with an agent that has the rights of an agent and no others.
type world struct {
	*e2e.Cluster
	*e2e.Agent
}

// newWorld makes a node on the given control plane, whose name begins with name.
func newWorld(t *testing.T, env *testenv.Env, name string) *world {
	t.Helper()
	namespace := env.Namespace(t)
	node := name + "-" + namespace
	if _, err := env.CreateNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	cluster := e2e.NewCluster(t, env.Config(), namespace)
	user := "agent:" + node
	cluster.Grant(t, user, node)
	return &world{cluster, e2e.NewAgent(t, &programs, node, kubeconfig(t, env.User(t, user)))}
}

// startAlone starts a control plane for one test, to be broken.
func startAlone(t *testing.T) *testenv.Env {
	t.Helper()
	return testenv.Start(t, testenv.Options{})
}

func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := testenv.WriteKubeconfig(path, config); err != nil {
		t.Fatal(err)
	}
	return path
}

// push creates a ConfigMap and moves the node to it.
func (w *world) push(t *testing.T, name, config string) *corev1.ConfigMap {
	t.Helper()
	cm := w.ConfigMap(t, name, config, nil)
	w.Assign(t, w.Node, cm)
	return cm
}

// good pushes a config that keeps every promise, and waits until it is promoted.
func (w *world) good(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	cm := w.push(t, name, w.Config("# "+name+"\n"))
	e2e.Eventually(t, soon, name+" is adopted and promoted", func() error { return w.Promoted(t, string(cm.UID)) })
	w.runs(t, cm)
	return cm
}

// runs checks that the child has loaded that config, byte for byte.
func (w *world) runs(t *testing.T, cm *corev1.ConfigMap) {
	t.Helper()
	e2e.Eventually(t, soon, "the child runs "+cm.Name, func() error {
		got, err := e2e.Get(t.Context(), fmt.Sprintf("http://127.0.0.1:%d/config", w.Port))
		if err == nil && got != cm.Data["kubelet"] {
			err = fmt.Errorf("the child has loaded %q, want %q", got, cm.Data["kubelet"])
		}
		return err
	})
}

// says waits for the node's condition.
func (w *world) says(t *testing.T, status corev1.ConditionStatus, message, reason string) {
	t.Helper()
	e2e.Eventually(t, soon, "the node's condition says so", func() error { return w.Says(t, w.Node, status, message, reason) })
}

// tidy checks that the agent left nothing but its state and the rendered config.
func (w *world) tidy(t *testing.T) {
	t.Helper()
	if err := w.NoChildren(t); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{filepath.Dir(w.Render), w.StateDir} {
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if ok, _ := filepath.Match("*tmp*", filepath.Base(path)); ok {
				t.Errorf("%s is left", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	list, err := os.ReadDir(filepath.Dir(w.Render))
	if err != nil || len(list) != 1 {
		t.Errorf("the directory of the rendered config holds %v (%v), want the config alone", list, err)
	}
}
