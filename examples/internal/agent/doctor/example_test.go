// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"fmt"
	"time"

	"github.com/belayproject/belay/examples/internal/agent/doctor"
)

// What is wrong with a setup comes with what helps.
func Example() {
	running := true
	report := doctor.Examine(doctor.Facts{
		Now: time.Now(), Source: "nodeconfig", Running: &running, // no state directory
		Unit: &doctor.Unit{Name: "agent.service", Loaded: true, Enabled: true, Restart: "on-failure"},
	})
	for _, f := range report.Findings {
		if f.Level == doctor.Problem {
			fmt.Printf("%s: %s\n-> %s\n", f.Check, f.What, f.Remedy)
		}
	}
	// Output:
	// state: no state directory is given: dynamic config is switched off here, whatever the source names
	// -> give the agent a directory of its own, such as --state-dir=/var/lib/belay-agent
	// restart: unit "agent.service" has Restart=on-failure: it stays down after an exit that was meant to bring another config
	// -> set Restart=always, as in examples/agent/systemd
}
