// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"fmt"
	"os"
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

// A Gauge says how busy the machine has been.
type Gauge struct{ idle, all float64 }

// NewGauge measures from now on.
func NewGauge() (g Gauge, err error) {
	g.idle, g.all, err = MachineTime()
	return g, err
}

// String says what share of the machine was idle since the gauge was made, and whether that makes it saturated.
func (g Gauge) String() string {
	idle, all, err := MachineTime()
	if err != nil {
		return err.Error()
	}
	share := (idle - g.idle) / max(all-g.all, 1e-9)
	text := fmt.Sprintf("%.0f%% of the machine were idle", 100*share)
	if share < Busy {
		text += ": SATURATED, not a measure of what is measured alone"
	}
	return text
}
