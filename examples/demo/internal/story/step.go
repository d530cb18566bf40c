// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package story

// A Kind is what a step must lead to on every node.
type Kind string

// The kinds.
const (
	// Alone: the node runs its init config while there is no API server, and says that it knows no more.
	Alone Kind = "running alone"
	// Settle: the node runs its init config and says so.
	Settle Kind = "settled"
	// Adopt: the node takes the config up, and it is promoted.
	Adopt Kind = "adopted and promoted"
	// Refuse: the node never runs the config; what ran runs on, untouched.
	Refuse Kind = "refused"
	// RollBack: the node runs the config, and goes back to the one before by itself.
	RollBack Kind = "rolled back"
)

// A Step is one thing that is done to the fleet.
type Step struct {
	Kind   Kind
	Config Config
	// Good is the config that must run at the end of the step.
	Good Config
	// Reason is how the reason of the ConfigOK condition must begin. Where the config was pushed, its UID must follow.
	Reason string
	// Push and Expect are one sentence each: what is done, and what should happen.
	Push, Expect string
	// Outage asks that the API server be stopped while the nodes roll back.
	Outage bool
}

// Title names the step.
func (s Step) Title() string {
	if s.Kind == Alone {
		return s.Config.Name + " without an API server"
	}
	return s.Config.Name + " " + s.Config.What
}

// BeginAlone is the step before the story, on nodes that have an API server only later.
func BeginAlone(s Settings) Step {
	local := Init(s)
	return Step{
		Kind: Alone, Config: local, Good: local, Reason: "failed to sync, desired config unclear",
		Push:   "Agents start on nodes while there is no API server.",
		Expect: "Each node must run the init config from its disk all the same, and say that it knows no more.",
	}
}

// Steps are the whole story. outage says that the API server may be stopped during the rollback.
func Steps(s Settings, outage bool) []Step {
	local, c := Init(s), configs(s)
	v1, v2, v3, v4, v5 := c[0], c[1], c[2], c[3], c[4]
	crash := Step{
		Kind: RollBack, Config: v4, Good: v1, Reason: "failed to run current", Outage: outage,
		Push: "v4 decodes and is valid, but names a port that another program has on these nodes: a kubelet exits.",
		Expect: "No check before a start can tell. Each node must count the crashes, go back to v1 by itself, " +
			"try v4 once more, give it up and say why. The API server is yours, so it stays up.",
	}
	if outage {
		crash.Expect = "No check before a start can tell. The API server is stopped after the first crashes. " +
			"Each node must go back to v1 by itself without it, try v4 once more, give it up, " +
			"and say why when the API server is back."
	}
	again := "Each node must leave v1 for v5, keep it on trial, and promote it."
	if outage {
		again += " Agents ask an API server that was away at growing intervals, so the first sign takes some seconds."
	}
	return []Step{
		{
			Kind: Settle, Config: local, Good: local, Reason: "current is set to the local default",
			Push:   "Agents start on nodes that have no config assigned.",
			Expect: "Each node must run the init config from its disk.",
		},
		{
			Kind: Adopt, Config: v1, Good: v1, Reason: "all checks passed",
			Push:   "v1 is a good config.",
			Expect: "Each node must restart its process once with it, keep it on trial, and promote it to last known good.",
		},
		{
			Kind: Refuse, Config: v2, Good: v1, Reason: "failed to load current",
			Push:   "v2 can't be decoded: it has maxPods:120, without the blank.",
			Expect: "Each agent must refuse it. No node may restart its process; each must stay on v1 and say why.",
		},
		{
			Kind: Refuse, Config: v3, Good: v1, Reason: "failed to validate current",
			Push: "v3 decodes but is not valid: images would be removed down to 80% once the disk is 70% full.",
			Expect: "Before a restart, each agent asks its kubelet, or the program that stands in for one, " +
				"to check v3. That must refuse it. No node may restart its process; each must stay on v1 and say why.",
		},
		crash,
		{
			Kind: Adopt, Config: v5, Good: v5, Reason: "all checks passed",
			Push:   "v5 is good again. Nothing on the nodes was repaired or reset by hand.",
			Expect: again,
		},
	}
}
