// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"cmp"
	"strconv"
	"time"
)

// ConditionType is the type of the condition that reports the config of a node.
const ConditionType = "ConfigOK"

// A Status is that of a condition.
type Status string

// The statuses: OK, known to be bad, and desired config unclear.
const (
	StatusTrue    Status = "True"
	StatusFalse   Status = "False"
	StatusUnknown Status = "Unknown"
)

// A Condition is the summary for people: the message is the effect, the reason is the cause. Two conditions are
// different if the status, the reason or the message differs, so == tells whether the transition time moves. The
// texts are never parsed.
type Condition struct {
	Status  Status
	Reason  string
	Message string
}

// Unclear is the condition of a live process that runs v.Use while the desired config can not be found for the given
// cause. The process changes nothing; only its report changes.
func (v Verdict) Unclear(cause string) Condition {
	message := using(v.Role, v.Use, v.Origin)
	if v.Role == RoleCurrent && v.Condition.Status == StatusUnknown {
		message = v.Condition.Message // as at the start
	}
	return Condition{StatusUnknown, reasonUnclear(cause), message}
}

const reasonOK = "all checks passed"

// using is the message. The two spellings of the last known good config are those of the specification: one for the
// local config, one for any other.
func using(role Role, r Ref, origin Origin) string {
	switch {
	case role == RoleCurrent && r.IsLocal() && origin == OriginInit:
		return "using current (init)"
	case role == RoleCurrent && r.IsLocal() && origin.orDefault() == OriginDefault:
		return "using current (default)"
	case role == RoleCurrent && r.IsLocal():
		return "using current (" + string(origin) + ")"
	case role == RoleCurrent:
		return "using current (UID: " + r.UID + ")"
	case r.IsLocal():
		return "using last-known-good (" + string(origin.orDefault()) + ")"
	default:
		return "using last known good: (UID: " + r.UID + ")"
	}
}

// using is the message while the assigned config is used.
func (a *Assignment) using() string {
	if a.message != "" {
		return a.message
	}
	return using(RoleCurrent, a.Ref, "")
}

func reasonLocal(origin Origin) string {
	if origin == OriginInit {
		return "current is set to the local default, and an init config was provided"
	}
	return "current is set to the local default, and no init config was provided"
}

func reasonUnclear(cause string) string {
	return "failed to sync, desired config unclear, cause: " + cause
}

func reasonLoad(r Ref) string { return "failed to load current (UID: " + r.UID + ")" }

func reasonValidate(r Ref) string { return "failed to validate current (UID: " + r.UID + ")" }

func reasonUnavailable(r Ref) string {
	return reasonUnclear("the checkpoint of current (UID: " + r.UID + ") is missing or damaged")
}

// reasonUndecided has the words of what gave no answer: a person must see to that, not to the config.
func reasonUndecided(r Ref, err error) string {
	cause := "judging current (UID: " + r.UID + "): "
	if err == nil {
		return reasonUnclear(cause + "undecided")
	}
	return reasonUnclear(cause + err.Error())
}

func reasonUnrecorded(r Ref) string {
	return "failed to record the start, and current (UID: " + r.UID + ") is on trial"
}

func reasonCrashLoop(r Ref, counted, threshold int) string {
	return "failed to run current (UID: " + r.UID + "), crash loop: " + strconv.Itoa(counted) +
		" unexplained restarts, tolerated: " + strconv.Itoa(threshold)
}

// reasonLocalCrashes has no count: it must not change with each crash.
func reasonLocalCrashes(origin Origin, last *Start) string {
	text := "failed to run current (" + string(origin) + "), crash loop"
	if last != nil && last.Signature != "" {
		text += ": " + last.Signature
	}
	return text
}

func reasonWeak(r Ref, boots, agent int) string {
	return "failed to run current (UID: " + r.UID + "), " + countedWeak(boots, agent)
}

// countedWeak says how often short runs of a config ended with the machine, or with the agent.
func countedWeak(boots, agent int) string {
	text := "unplanned boots: " + strconv.Itoa(boots)
	if agent > boots {
		text = "deaths of the agent: " + strconv.Itoa(agent)
	}
	return text + ", tolerated: " + strconv.Itoa(weakThreshold)
}

// reasonCommon is that of a config which is used although it does not live: nothing below it does either.
func reasonCommon(c *Case, origin Origin) string {
	text := "not the config: " + cmp.Or(c.Signature, c.Reason)
	for _, f := range c.Below {
		text += "; also with " + label(f.Used.toRef(), origin)
	}
	return text
}

// reasonRetry is that of a config under suspicion which is tried once more.
func reasonRetry(c *Case) string { return "trying again: " + c.Reason }

// reasonExcused is that of a config after an end that was not by the config.
func reasonExcused(st *Start) string { return "not the config: " + cmp.Or(st.Signature, st.Detail) }

func reasonProbe(u Used, probe string, deadline time.Duration) string {
	name := "failed to run current (UID: " + u.UID + "),"
	if u.fallback() {
		name = "fallback (UID: " + u.UID + "),"
	}
	return name + " required probe " + strconv.Quote(probe) + " failed for more than " + deadline.String()
}

func reasonPerson(r Ref, why string) string {
	return "rejected (UID: " + r.UID + "), cause: " + cmp.Or(why, "not given")
}

// countTimes says how often something happened.
func countTimes(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}
