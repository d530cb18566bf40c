// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import "time"

// ViewMetrics is called by a [View], by one goroutine. Each field may be nil. No label holds a name or a holder: the number of series is fixed.
type ViewMetrics struct {
	// Peers is called after changes with the number of peers in each of the four states.
	Peers func(byState map[State]int)
	// Fresh is called when the view becomes up to date, or ceases to be, as it does at the end of Run.
	Fresh func(fresh bool)
	// Brake is called when the mass-loss brake takes hold or lets go.
	Brake func(on bool)
	// Detected is called for each loss with how long the peer had been quiet.
	Detected func(quiet time.Duration)
}

// CollectorMetrics is called by a [Collector]. Each field may be nil.
type CollectorMetrics struct {
	// Collected is called for each Lease that a pass has dealt with, with what came of it.
	Collected func(outcome CollectOutcome)
}

// viewFigures is what a view has told its metrics.
type viewFigures struct {
	unconfirmed, alive, suspect, lost int
	fresh, brake                      bool
}

// tell calls those whose figure is another one than was.
func (m *ViewMetrics) tell(was, is viewFigures, losses []time.Duration) {
	if m.Detected != nil {
		for _, quiet := range losses {
			m.Detected(quiet)
		}
	}
	if m.Fresh != nil && was.fresh != is.fresh {
		m.Fresh(is.fresh)
	}
	if m.Brake != nil && was.brake != is.brake {
		m.Brake(is.brake)
	}
	was.fresh, was.brake = is.fresh, is.brake
	if m.Peers != nil && was != is {
		m.Peers(map[State]int{Unconfirmed: is.unconfirmed, Alive: is.alive, Suspect: is.suspect, Lost: is.lost})
	}
}
