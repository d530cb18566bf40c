// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync/kubelet"
)

const (
	underNone   = `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`
	underStatic = `{"policyName":"static","defaultCpuSet":"0-1","checksum":1636926438}`
	static      = "cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}\n"
	mapped      = `{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],` +
		`"gidMappings":[{"hostId":65536,"containerId":0,"length":65536}]}`
)

// A stateNode is a kubelet's root directory, and the records of an agent.
type stateNode struct {
	*testing.T
	kubelet.StateFiles
}

func newStateNode(t *testing.T) *stateNode {
	t.Helper()
	store, err := checkpoint.Open(filepath.Join(t.TempDir(), "state"), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &stateNode{t, kubelet.StateFiles{RootDir: t.TempDir(), Records: store}}
}

// write is what the kubelet does while it runs.
func (n *stateNode) write(name, text string) {
	n.Helper()
	path := filepath.Join(n.RootDir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		n.Fatal(err)
	}
}

// start prepares a start with a config; moves is how many files it is to move.
func (n *stateNode) start(config string, moves int) {
	n.Helper()
	moved, err := n.Prepare(n.Context(), []byte(config))
	if err != nil || len(moved) != moves {
		n.Fatalf("Prepare(%q) = %q, %v, want %d moves", config, moved, err, moves)
	}
}

// holds checks what a file holds; an empty text stands for a file that is not there.
func (n *stateNode) holds(name, want string) {
	n.Helper()
	text, err := os.ReadFile(filepath.Join(n.RootDir, name))
	if want == "" && errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil || string(text) != want {
		n.Fatalf("%s holds %q, %v, want %q", name, text, err, want)
	}
}

// L-CS-41: the state of a static CPU manager goes aside on the way back, and returns with the config that wrote it.
func TestStateFilesGoAsideAndReturn(t *testing.T) {
	n := newStateNode(t)
	const cpu = "cpu_manager_state"
	n.start("", 0)
	n.write(cpu, underNone)
	n.start(static, 1)
	n.holds(cpu, "")
	n.write(cpu, underStatic)
	n.start(static, 0)
	n.holds(cpu, underStatic)
	n.start("maxPods: 3\n", 2)
	n.holds(cpu, underNone)
	n.start(static+"maxPods: 4\n", 2)
	n.holds(cpu, underStatic)
	n.start(static+"reservedSystemCPUs: '1'\n", 1)
	n.holds(cpu, "")
}

// L-CS-41: a file is judged by what it says itself where no start is on record, and where records fail.
func TestStateFilesWithoutRecords(t *testing.T) {
	n := newStateNode(t)
	n.Records = nil
	n.write("cpu_manager_state", underStatic)
	n.write("memory_manager_state", `{"policyName":"Static"}`)
	n.write("dra_manager_state", "")
	n.write("pods/p1/userns", mapped)
	n.start(static+"memoryManagerPolicy: Static\n", 1) // the damaged one
	n.start("", 2)
	n.holds("cpu_manager_state", "")
	n.holds("memory_manager_state", "")
	n.holds("pods/p1/userns", mapped)
	n.start("userNamespaces: {idsPerPod: 131072}\n", 1)
	n.holds("pods/p1/userns", "")
}

// L-CS-41, R-CS-15: a flag of the kubelet overrules its config.
func TestStateFilesKnowFlags(t *testing.T) {
	n := newStateNode(t)
	n.Flags = []string{"--v=2", "--cpu-manager-policy", "static", "--kube-reserved=cpu=1"}
	n.write("cpu_manager_state", underStatic)
	n.start("cpuManagerPolicy: none\n", 0)
	n.start("kubeReserved: {cpu: 300m}\n", 0)
	n.start("reservedSystemCPUs: '0'\n", 1)
}

// L-CS-41: what is kept is bounded, and nothing below the root directory is touched that binds no config.
func TestStateFilesAreBounded(t *testing.T) {
	n := newStateNode(t)
	n.write("pods/p1/etc-hosts", "x")
	n.write("kubelet_internal_checkpoint", "damaged")
	for i := range 40 {
		n.start(fmt.Sprintf("cpuManagerPolicy: static\nreservedSystemCPUs: '%d'\n", i), min(i, 1))
		n.write("cpu_manager_state", underStatic)
	}
	files, err := os.ReadDir(filepath.Join(n.RootDir, "belay-aside"))
	if err != nil || len(files) == 0 || len(files) > 16 {
		t.Errorf("%d files are aside, %v, want 1 to 16", len(files), err)
	}
	n.holds("kubelet_internal_checkpoint", "damaged")
	n.holds("pods/p1/etc-hosts", "x")
}

// L-CS-41: a kubelet that has not run yet has no files; what it is started with is on record all the same.
func TestStateFilesBeforeTheFirstStart(t *testing.T) {
	n := newStateNode(t)
	root := n.RootDir
	n.RootDir = filepath.Join(root, "later")
	n.start(static, 0)
	n.write("cpu_manager_state", underStatic)
	n.start(static+"reservedSystemCPUs: '1'\n", 1)
	n.RootDir = ""
	n.start(static, 0)
}

// L-CS-41: a file that can't be moved is in the way of the start, and the error names it.
func TestStateFileThatCanNotBeMoved(t *testing.T) {
	n := newStateNode(t)
	n.write("cpu_manager_state", underStatic)
	n.write("belay-aside", "a file where the directory should be")
	_, err := n.Prepare(t.Context(), nil)
	if err == nil {
		t.Fatal("Prepare succeeds, and the kubelet will die")
	}
	n.holds("cpu_manager_state", underStatic)
	if err := os.Remove(filepath.Join(n.RootDir, "belay-aside")); err != nil {
		t.Fatal(err)
	}
	n.start("", 0) // it finishes what was begun
	n.holds("cpu_manager_state", "")
}

// L-CS-41: a change that leaves pods behind under another state is named.
func TestDrains(t *testing.T) {
	for _, c := range []struct {
		from, to, want string
	}{
		{"", "maxPods: 3\n", ""},
		{"", static, "cpuManagerPolicy,kubeReserved.cpu"},
		{static, "", "cpuManagerPolicy,kubeReserved.cpu"},
		{static, static + "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n", "cpuManagerPolicyOptions"},
		{"kubeReserved: {cpu: 1}\n", "kubeReserved: {cpu: 2}\n", ""},
		{
			"memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0}]\n",
			"memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 1}]\n", "reservedMemory",
		},
		{"cpuManagerPolicy: none\n", "{}\n", ""},
		{"", "userNamespaces: {idsPerPod: 131072}\n", "userNamespaces.idsPerPod"},
		{"topologyManagerPolicy: restricted\n", "", ""},
	} {
		got, err := kubelet.StateFiles{}.Drains([]byte(c.from), []byte(c.to))
		slices.Sort(got)
		if err != nil || strings.Join(got, ",") != c.want {
			t.Errorf("Drains(%q, %q) = %q, %v, want %s", c.from, c.to, got, err, c.want)
		}
	}
	for _, c := range [][2]string{{"a: [", ""}, {"", "a: ["}} {
		if _, err := (kubelet.StateFiles{}).Drains([]byte(c[0]), []byte(c[1])); err == nil {
			t.Errorf("Drains(%q) succeeds", c)
		}
	}
}

// L-CS-41: the root directory is the one that the kubelet takes.
func TestRootDir(t *testing.T) {
	for _, c := range []struct {
		command []string
		want    string
	}{
		{nil, ""}, {[]string{"/usr/bin/kubelet"}, "/var/lib/kubelet"}, {[]string{"/opt/wrapper.sh"}, ""},
		{[]string{"/opt/wrapper.sh", "--root-dir=/data"}, "/data"},
		{[]string{"kubelet", "--root-dir", "/a", "--root-dir=/b"}, "/b"},
	} {
		if got := kubelet.RootDir(c.command); got != c.want {
			t.Errorf("RootDir(%q) = %q, want %q", c.command, got, c.want)
		}
	}
}
