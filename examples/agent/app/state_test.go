// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/examples/internal/e2e"
)

const staticCPUs = "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n"

// root is the directory of the child's state files.
func (w *world) root(t *testing.T) string {
	t.Helper()
	for i, arg := range w.Child {
		if arg == "--root-dir" {
			return w.Child[i+1]
		}
	}
	t.Fatalf("the child has no root directory: %q", w.Child)
	return ""
}

// policy waits until a state file was written under that policy.
func (w *world) policy(t *testing.T, file, policy string) {
	t.Helper()
	e2e.Eventually(t, soon, file+" was written under "+policy, func() error {
		text, err := os.ReadFile(filepath.Join(w.root(t), file))
		if err == nil && string(text) != fmt.Sprintf(`{"policyName":%q}`, policy) {
			err = fmt.Errorf("it holds %s", text)
		}
		return err
	})
}

// leaves pushes a config that fails, and waits until the node is back on the one before.
func (w *world) leaves(t *testing.T, name, config string, good *corev1.ConfigMap) {
	t.Helper()
	bad := w.push(t, name, w.Config(config))
	e2e.Eventually(t, soon, "the node says why it has left "+name, func() error {
		c, err := w.ConfigOK(t, w.Node)
		if err == nil && (c.Status != corev1.ConditionFalse || !strings.Contains(c.Reason, string(bad.UID))) {
			err = fmt.Errorf("ConfigOK is %s, %q, %q", c.Status, c.Message, c.Reason)
		}
		return err
	})
	w.runs(t, good)
}

// L-CS-41: a config that is left takes its state on disk with it: every older config can start, and finds what it
// has written itself.
func TestAgentRollsTheKubeletsStateBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "state")
	p := w.Start(t)
	v1 := w.good(t, "v1")
	w.policy(t, "cpu_manager_state", "none")
	w.leaves(t, "static", staticCPUs+"featureGates: {ExitSoon: true}\n", v1)
	w.policy(t, "cpu_manager_state", "none")

	v2 := w.push(t, "v2", w.Config(staticCPUs))
	e2e.Eventually(t, soon, "v2 is promoted", func() error { return w.Promoted(t, string(v2.UID)) })
	w.policy(t, "cpu_manager_state", "static")
	const memory = "memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 200Mi}}]\n" +
		"kubeReserved: {memory: 100Mi}\nevictionHard: {memory.available: 100Mi}\n"
	w.leaves(t, "both", memory+"featureGates: {ExitSoon: true}\n", v2)
	w.policy(t, "cpu_manager_state", "static")
	w.policy(t, "memory_manager_state", "None")
	if !strings.Contains(p.Log(), "Moved a state file of the kubelet") {
		t.Error("the log has no word of the files that went aside")
	}

	w.Assign(t, w.Node, nil)
	w.says(t, corev1.ConditionTrue, "using current (init)",
		"current is set to the local default, and an init config was provided")
	w.policy(t, "cpu_manager_state", "none")
}

// L-CS-41: a file that the kubelet asks a person to delete goes aside, and the config that was in use stays in use.
func TestAgentMovesTheFileThatTheKubeletDiesOf(t *testing.T) {
	t.Parallel()
	n := newLocal(t, "--crash-loop-threshold=3")
	w := &world{Agent: n.Agent}
	p := n.Start(t)
	good := n.wants(t, n.Config("maxPods: 41\n"))
	n.until(t, "a good config is promoted", promoted(good))
	w.policy(t, "memory_manager_state", "None")
	broken := filepath.Join(w.root(t), "memory_manager_state")
	must(t, os.WriteFile(broken, []byte(`{"policyName":"None","checksum":7}`), 0o600))
	n.killChild(t)
	w.policy(t, "memory_manager_state", "None")
	n.until(t, "the config is in use", promoted(good))
	aside, err := filepath.Glob(filepath.Join(w.root(t), "belay-aside", "memory_manager_state.*"))
	if err != nil || len(aside) != 1 {
		t.Errorf("aside are %q, %v, want the one file that was broken", aside, err)
	}
	if !strings.Contains(p.Log(), "the kubelet has ended because of it") {
		t.Error("the log does not say why the file went aside")
	}
}

// L-CS-42: a config is left that needs of the machine what is not there.
func TestAgentLeavesConfigsThatNeedTheMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "machine")
	w.Start(t)
	v1 := w.good(t, "v1")
	none := filepath.Join(t.TempDir(), "none")
	w.leaves(t, "file", "featureGates: {DieWithoutFile: true}\ntlsCertFile: "+none+"\ntlsPrivateKeyFile: "+none+"\n", v1)
	w.leaves(t, "runtime", "featureGates: {NoRuntime: true}\ncontainerRuntimeEndpoint: unix://"+none+"\n", v1)

	socket := filepath.Join(t.TempDir(), "cri.sock")
	l, err := net.Listen("unix", socket)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	v2 := w.push(t, "v2", w.Config("featureGates: {NoRuntime: true}\ncontainerRuntimeEndpoint: unix://"+socket+"\n"))
	e2e.Eventually(t, soon, "v2 is promoted", func() error { return w.Promoted(t, string(v2.UID)) })
	w.runs(t, v2)
}
