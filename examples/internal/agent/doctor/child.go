// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Child is the supervised program, as its running agent tells.
type Child struct {
	// PID is its process ID; 0 while none runs.
	PID int
	// Restarts is how many starts nothing explains of the ten minutes up to the last, which was at LastRestart.
	Restarts    int
	LastRestart time.Time
	// How says how the last one ended on its own, Ended when, and Last has its last lines; empty if none has.
	How   string
	Ended time.Time
	Last  []string
	// Trouble is the cause in the node's condition while that is not True; empty otherwise.
	Trouble string
	// Failing are the probes that fail now, with their errors.
	Failing []string
}

const (
	// manyRestarts within tooRecent are a finding, also while the child happens to live.
	manyRestarts = 3
	tooRecent    = 10 * time.Minute
)

func findChild(f *Facts) []Finding {
	c := f.Child
	switch {
	case c == nil:
		return nil
	case c.PID == 0:
		return c.findEnd("no child runs: "+c.whyDead(), f.Now)
	case c.Restarts >= manyRestarts && f.Now.Sub(c.LastRestart) < tooRecent:
		return c.findEnd(fmt.Sprintf("the child keeps ending: %d restarts within 10 minutes that nothing explains; "+
			"process %d runs now", c.Restarts, c.PID), f.Now)
	case strings.HasPrefix(c.Trouble, "not healthy: required probe"):
		return one(checkChild, Problem, fmt.Sprintf("the child runs as process %d, %s", c.PID, c.Trouble),
			"ask that probe by hand, and look at the child's log; the agent says here when it passes")
	default:
		return fine(checkChild, fmt.Sprintf("it runs as process %d", c.PID))
	}
}

func (c *Child) whyDead() string {
	switch {
	case strings.HasPrefix(c.Trouble, "the child can't be started"):
		return c.Trouble
	case c.How != "":
		return c.How
	case c.Trouble != "":
		return c.Trouble
	default:
		return "none has been started yet"
	}
}

// findEnd is a problem with the last lines and one next step.
func (c *Child) findEnd(what string, now time.Time) []Finding {
	if c.How != "" && !c.Ended.IsZero() {
		what += fmt.Sprintf("; the last one ended %s ago", max(now.Sub(c.Ended), 0).Round(time.Second))
		if !strings.Contains(what, c.How) {
			what += " with " + c.How
		}
	}
	return []Finding{{Check: checkChild, Level: Problem, What: what, Lines: c.Last,
		Remedy: nextStep(slices.Concat(c.Last, []string{c.How, c.Trouble})...)}}
}

// hints name the next step for what programs are known to say when they can't run. The first that fits is taken: the
// more special ones come first.
var hints = []struct{ mark, step string }{
	{
		"differs from state checkpoint",
		"drain the node, take away the state file that the line names, and let the agent start the child again",
	},
	{"validate CRI v1", startRuntime}, {"container runtime", startRuntime}, {"containerd.sock", startRuntime},
	{"crio.sock", startRuntime},
	{
		"no space left on device",
		"free space on the disk that the line names: df -h; the child is started again by itself",
	},
	{"input/output error", "look for a failing disk: dmesg; the child is started again by itself"},
	{
		"exec format error",
		"install the program for this machine's architecture, or repair the file: it can't be executed",
	},
	{"can't be started", replaceProgram}, {"could not be started", replaceProgram},
	{
		tooLarge,
		"make it smaller, until agent check FILE accepts it, and assign the new version of the config",
	},
	{
		"address already in use",
		"find the process that has the port: ss -ltnp; end it, or name another port in the config",
	},
	{"swap on is not supported", "swapoff -a, or set failSwapOn: false in the config"},
	{
		"unrecognized feature gate",
		"take the feature gate out of the config, or run a version that has it; then assign the new version " +
			"of the config",
	},
	{
		"unknown field",
		"take the field out of the config, or run a version that has it; then assign the new version of the config",
	},
	{"invalid configuration", "correct the fields that the line names, and assign the new version of the config"},
	{
		"no such file or directory",
		"put the file that the line names back; if it is gone for good, take its field out of the config and assign the " +
			"new version",
	},
	{"permission denied", "give the child's user the file that the line names"},
	{"x509", "see to the certificate that the line names, and to the clock"},
}

const (
	// tooLarge is said of a document that is larger than any that is read.
	tooLarge = "bytes, at most"

	startRuntime = "start the container runtime: systemctl start containerd (or crio), and see that the socket that the " +
		"line names is there; the agent starts the child again by itself"
	// nameRuntime is for a config that was rejected while the runtime of the node answered.
	nameRuntime = "correct containerRuntimeEndpoint in the config, or start the runtime that it names: systemctl start " +
		"containerd (or crio)"
	replaceProgram = "put the same version of the program back in its place, executable; the agent tries again by itself"
)

// hintFor is the hint that fits lines; empty for none.
func hintFor(lines ...string) string {
	text := strings.Join(lines, "\n")
	for _, h := range hints {
		if strings.Contains(text, h.mark) {
			return h.step
		}
	}
	return ""
}

// nextStep is what to do about an end whose last lines are given.
func nextStep(lines ...string) string {
	if s := hintFor(lines...); s != "" {
		return s
	}
	return "mend what its last lines name; the agent starts it again by itself, and goes back to an older config " +
		"where the config is at fault"
}
