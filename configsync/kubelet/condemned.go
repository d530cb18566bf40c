// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"maps"
	"slices"
	"strings"
)

// complaints are what a kubelet says when it ends because of a state file whose name it does not say.
var complaints = map[string]string{
	"not all reserved cpus":                                     "cpu_manager_state",
	"current set of available CPU":                              "cpu_manager_state",
	"the expected machine state is different from the real one": "memory_manager_state",
}

// fileInTheWay returns the state file that the last lines of a kubelet name as the reason of its end: one that it
// could not read, or that it asks a person to delete. It is empty where there is none, or it binds nothing.
func fileInTheWay(last []string) string {
	for _, line := range slices.Backward(last) {
		for text, file := range complaints {
			if strings.Contains(line, text) {
				return file
			}
		}
		if !strings.Contains(line, "could not restore state from checkpoint") &&
			!strings.Contains(line, "checkpoint is corrupted") {
			continue
		}
		for _, b := range allBindings() {
			if strings.Contains(line, b.file) {
				return b.file
			}
		}
	}
	return ""
}

// moveInTheWay moves the file aside that the kubelet has ended because of, once in a boot: it does not return, and no
// older one comes in its place. It does nothing where the file goes aside for another reason.
func (p *boundPlan) moveInTheWay(end kubeletEnd, files []lookAt) {
	name := fileInTheWay(end.last)
	if name == "" || end.boot == "" || p.next.Moved[name] == end.boot || p.movesFile(name) {
		return
	}
	for _, f := range files {
		if f.file != name || !f.there {
			continue
		}
		p.moveAside(f, boundValue{}, "the kubelet has ended because of it")
		moved := map[string]string{}
		maps.Copy(moved, p.next.Moved)
		moved[name] = end.boot
		p.next.Moved = moved
	}
}

func (p *boundPlan) movesFile(name string) bool {
	return slices.ContainsFunc(p.moves, func(m fileMove) bool { return m.From == name || m.To == name })
}

// A kubeletEnd is how the run before a start ended: its last lines, and the boot that it was in.
type kubeletEnd struct {
	last []string
	boot string
}
