// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync/configsynctest"
)

const askedToDelete = `E0101 10:00:00.1 9 run.go:72] "command failed" err="could not restore state from checkpoint: ` +
	`checkpoint is corrupted, please drain this node and delete the CPU manager checkpoint file ` +
	`\"/var/lib/kubelet/cpu_manager_state\" before restarting Kubelet"`

// The file is the one of the newest line that says that the kubelet ends because of one, and none else.
func TestFileInTheWay(t *testing.T) {
	for line, want := range map[string]string{
		askedToDelete: "cpu_manager_state",
		"could not restore state from checkpoint: x, please delete the memory manager checkpoint file " +
			"\"/r/memory_manager_state\"": "memory_manager_state",
		`failed to load checkpoint dra_manager_state: checkpoint is corrupted`:                     "dra_manager_state",
		`start cpu manager error: not all reserved cpus: "0-1" are present in defaultCpuSet: "1"`:  "cpu_manager_state",
		`[memorymanager] the expected machine state is different from the real one`:                "memory_manager_state",
		`Failed to read data from checkpoint kubelet_internal_checkpoint: checkpoint is corrupted`: "",
		`trying to load cpu_manager_state`:                                                         "",
		`please delete /etc/passwd`:                                                                "",
	} {
		if got := fileInTheWay([]string{"before", line, "after"}); got != want {
			t.Errorf("fileInTheWay(%q) = %q, want %q", line, got, want)
		}
	}
	both := []string{askedToDelete, "failed to load checkpoint dra_manager_state: checkpoint is corrupted"}
	if got := fileInTheWay(both); got != "dra_manager_state" {
		t.Errorf("of two lines the file is %q, want that of the newest", got)
	}
}

// L-CS-41: a file goes aside that the kubelet says it has ended because of, once in a boot, and does not return.
// Without records none does.
func TestAFileInTheWayGoesAsideOnce(t *testing.T) {
	w := newBoundWorld(-1, boundFault{})
	const name, bad = "cpu_manager_state", `{"policyName":"none","checksum":1}`
	start := func(boot string, moves bool) {
		t.Helper()
		w.files[name], w.durable[name] = bad, bad
		w.end = kubeletEnd{[]string{askedToDelete}, boot}
		if dead, err := w.prepare(boundConfigs(t)[0]); dead || err != nil {
			t.Fatalf("prepare = %t, %v", dead, err)
		}
		if _, there := w.files[name]; there == moves {
			t.Errorf("in boot %s the file is there: %t, want %t", boot, there, !moves)
		}
	}
	start("b1", true)
	start("b1", false)
	start("b2", true)
	start("b2", false)

	alone := StateFiles{RootDir: t.TempDir(), Last: []string{askedToDelete}, BootID: "b1"}
	if end := alone.lastEnd(); end.boot != "" {
		t.Errorf("without records the end is %+v, want nothing", end)
	}
	alone.Records, alone.BootID = &configsynctest.Disk{}, ""
	if end := alone.lastEnd(); end.boot == "" || !slices.Equal(end.last, alone.Last) {
		t.Errorf("with records the end is %+v, want the lines and the kernel's boot", end)
	}
}

// Killed or without power at any step, the file is aside after the next start, whole and once.
func TestAFileInTheWayIsMovedAcrossKills(t *testing.T) {
	const name, bad = "cpu_manager_state", `{"policyName":"none","checksum":1}`
	config, killed := boundConfigs(t)[0], 0
	for _, fault := range boundFaults {
		for at := range 40 {
			w := newBoundWorld(at, fault)
			w.files[name], w.durable[name] = bad, bad
			w.end = kubeletEnd{[]string{askedToDelete}, "b1"}
			for range 3 {
				dead, err := w.prepare(config)
				if err != nil {
					t.Fatalf("%s at step %d: %v", fault.name, at, err)
				}
				if dead && fault.power {
					w.cutPower(0)
				}
				if dead {
					killed++
				}
			}
			var aside []string
			for file, text := range w.files {
				if strings.HasPrefix(file, path.Join(asideDir, name)) && text == bad {
					aside = append(aside, file)
				}
			}
			if _, there := w.files[name]; there || len(aside) != 1 {
				t.Fatalf("%s at step %d: the file is there: %t, and aside as %q, want once", fault.name, at, there, aside)
			}
		}
	}
	if killed == 0 {
		t.Error("no kill came")
	}
}
