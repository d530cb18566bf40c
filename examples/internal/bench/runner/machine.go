// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Busy is a share of the machine: with less of it idle, the machine counts as saturated.
const Busy = 0.05

// ticks is the unit of /proc: it is the same on every Linux that Go runs on.
const ticks = 100

// ProcessTime reads the processor time of a process so far, in seconds, all its threads together.
func ProcessTime(pid string) (float64, error) {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(raw, []byte(") ")) // the name may hold spaces
	fields := strings.Fields(string(rest))
	if len(fields) < 13 {
		return 0, fmt.Errorf("process %s: its stat has %d fields", pid, len(fields))
	}
	return sum(fields[11:13])
}

// MachineTime reads what all processors have done so far, in seconds.
func MachineTime() (idle, all float64, err error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	fields := strings.Fields(first)
	if len(fields) < 9 {
		return 0, 0, fmt.Errorf("/proc/stat begins with %q", first)
	}
	if all, err = sum(fields[1:9]); err != nil {
		return 0, 0, err
	}
	idle, err = sum(fields[4:6])
	return idle, all, err
}

func sum(fields []string) (seconds float64, err error) {
	for _, f := range fields {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return 0, err
		}
		seconds += float64(n) / ticks
	}
	return seconds, nil
}

// A Gauge says how busy the machine has been, and who has kept it so.
type Gauge struct {
	names     []string
	pids      []int
	used      []float64 // by each process, in seconds
	idle, all float64
}

// NewGauge measures from now on. The processes are to be told apart from all others on the machine, in the order of their names.
func NewGauge(processes map[string]int) (*Gauge, error) {
	g := &Gauge{names: slices.Sorted(maps.Keys(processes))}
	for _, name := range g.names {
		g.pids = append(g.pids, processes[name])
	}
	return g, g.read()
}

func (g *Gauge) read() (err error) {
	g.used = make([]float64, len(g.pids))
	for i, pid := range g.pids {
		if g.used[i], err = ProcessTime(strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	g.idle, g.all, err = MachineTime()
	return err
}

// Since says what share of the machine was idle since the gauge was made, whether that makes it saturated, and how many processors were used by
// the processes and by all others.
func (g *Gauge) Since() (string, error) {
	now := *g
	if err := now.read(); err != nil {
		return "", err
	}
	cores := float64(runtime.NumCPU())
	took := max(now.all-g.all, 1e-9) / cores
	share := (now.idle - g.idle) / max(now.all-g.all, 1e-9)
	text := fmt.Sprintf("%.0f%% of %.0f processors were idle", 100*share, cores)
	if share < Busy {
		text += ", SATURATED"
	}
	others := cores * (1 - share)
	for i, name := range g.names {
		used := (now.used[i] - g.used[i]) / took
		others -= used
		text += fmt.Sprintf(", %s used %.2f", name, used)
	}
	return text + fmt.Sprintf(", others %.2f", max(0, others)), nil
}
