// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest

import (
	"fmt"
	"strings"
)

// Crash looks at every state in which a power cut may leave a [Disk], at any point of a piece of work, and asks of each whether
// the promises hold. The states at one point are those of the weakest disk that keeps what was synced:
//
//   - Of the changes of names since the last Sync of their directory, any subset is there: a file may have its new name while an
//     earlier removal is not done, and the other way round. Those of one name keep their order; a rename inside one directory
//     is there whole or not at all.
//   - Of a file that was written since its last Sync, the content is the old one, the new one, the first half of the new one, or
//     as long as the new one and zero where it was written.
//   - What a Sync failed to make durable is lost, or in the case of names in doubt, also after a Sync that succeeds.
//
// Work and Check must do the same when they are run again.
type Crash struct {
	// Work opens a store on the disk and uses it, and notes what was acknowledged; see [Disk.Note].
	Work func(d *Disk) error
	// Check opens the store on what a crash left, and returns an error where a promise is broken, given what was noted before
	// the crash. Depth decides whether crashes in its own calls are looked at, too; then it notes and stops as it needs.
	Check func(d *Disk, noted []any) error
	// Depth is how many crashes may follow one another: 1, the default, is one in Work; 2 is a second one in Check, and so on.
	Depth int
	// PerPoint bounds the states that are looked at for one point; 0 = 16384. Where there are more, they are drawn by Seed.
	PerPoint int
	Seed     uint64
}

// Report says how much was looked at.
type Report struct {
	States  int // points × what may be kept there
	Nested  int // those of them after more than one crash
	Checked int // those that differ in the disk or in what was noted: Check ran on each
	Sampled int // points of which not every state was looked at
}

// Add sums up.
func (r Report) Add(o Report) Report {
	return Report{r.States + o.States, r.Nested + o.Nested, r.Checked + o.Checked, r.Sampled + o.Sampled}
}

// A CrashError says which state breaks a promise.
type CrashError struct {
	State string // for Replay
	Story string // the calls before the crash, what it kept, and what was on the disk
	Err   error  // of Check
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("after a crash: %v\n%s\nreplay it with the same Crash and Replay(%q)", e.Err, e.Story, e.State)
}

// Unwrap gives the error of Check.
func (e *CrashError) Unwrap() error { return e.Err }

// Explore runs Work once, and Check on every state. It ends with the first that breaks a promise: a [CrashError].
func (c Crash) Explore() (Report, error) {
	e := &explorer{Crash: c, seen: map[uint64]int{}}
	d := NewDisk()
	if err := c.Work(d); err != nil {
		return e.report, fmt.Errorf("the work itself failed: %w", err)
	}
	err := e.story(d, d.prior, 0, max(c.Depth, 1), "")
	return e.report, err
}

// Replay runs Work, and Check on one state as a [CrashError] names it. It returns that error again, or nil when it is gone.
func (c Crash) Replay(state string) error {
	e := &explorer{Crash: c, seen: map[uint64]int{}}
	d := NewDisk()
	if err := c.Work(d); err != nil {
		return fmt.Errorf("the work itself failed: %w", err)
	}
	noted := d.prior
	steps := strings.Split(state, "/")
	for i, step := range steps {
		choice, err := parseChoice(step)
		if err != nil || choice.point >= len(d.log) {
			return fmt.Errorf("state %q: there is no step %q: %w", state, step, err)
		}
		m := d.start
		for _, ev := range d.log[:choice.point+1] {
			m.apply(ev)
			if ev.kind == evNote {
				noted = append(noted, ev.note)
			}
		}
		was := d
		d = m.choose(choice.mask).disk(choice.digits, true)
		story := m.tell(was, choice)
		if err := c.Check(d, noted); err != nil || i == len(steps)-1 {
			return e.broken(strings.Join(steps[:i+1], "/"), story, err)
		}
	}
	return nil
}
