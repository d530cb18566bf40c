// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/testenv"
)

// processes are those that share the machine.
func (w *world) processes() map[string]int {
	return map[string]int{
		"the API server": w.env.APIServer().PID(), "etcd": w.env.Server(testenv.Etcd).PID(), "both sides and their driver": os.Getpid(),
	}
}

// work is the processor time of each process, in seconds. Unlike a time it is the same however much else there is on the machine.
type work map[string]float64

func (w *world) worked() (work, error) {
	all := work{}
	for name, pid := range w.processes() {
		used, err := runner.ProcessTime(strconv.Itoa(pid))
		if err != nil {
			return nil, err
		}
		all[name] = used
	}
	return all, nil
}

func (a work) since(b work) work {
	d := work{}
	for name, used := range a {
		d[name] = used - b[name]
	}
	return d
}

func (a work) total() (sum float64) {
	for _, used := range a {
		sum += used
	}
	return sum
}

// list is what each process took for each of so many nodes.
func (a work) list(nodes int) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		texts = append(texts, fmt.Sprintf("%s %.2fms", name, 1000*a[name]/float64(nodes)))
	}
	return strings.Join(texts, ", ")
}

func (b *bench) printWork(name string, nodes int, ours, limits []burst) {
	each := func(b burst) float64 { return 1000 * b.work.total() / float64(nodes) }
	our, limit := runner.Each(ours, each), runner.Each(limits, each)
	b.Print(runner.Line{
		Name: name + ".work", Ours: our.String() + "ms", Peer: limit.String() + "ms", Ratio: runner.Over(our.Median(), limit.Median()),
		More: fmt.Sprintf("of a processor for a node, that of the assignment among it; ours: %s; peer: %s", ours[len(ours)-1].work.list(nodes), limits[len(limits)-1].work.list(nodes)),
	})
}
