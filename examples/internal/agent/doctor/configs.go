// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/lkg"
)

const (
	// clockSlack is how far a record may lie ahead of the clock.
	clockSlack = time.Minute
	// overdue is after how many times of its length a trial that has not ended is a finding, and leastOverdue the least
	// time.
	overdue      = 3
	leastOverdue = time.Hour
)

// Overdue reports whether a trial that needs so much healthy time, and began at since, should have ended by now. It is
// for people: nothing is decided by it. A zero need is taken for the default.
func Overdue(since time.Time, needed time.Duration, now time.Time) bool {
	if needed <= 0 {
		needed = lkg.DefaultTrial
	}
	return !since.IsZero() && now.Sub(since) > max(overdue*needed, leastOverdue)
}

func records(f *Facts) []Finding {
	if f.ExplainErr != nil {
		return one(checkRecords, Problem, fmt.Sprintf("what is on record can't be read: %v", f.ExplainErr),
			"see the check state; the agent itself goes on with its local config")
	}
	if f.Explanation == nil {
		return nil
	}
	var found []Finding
	for _, n := range f.Explanation.State.Notices {
		found = append(found, one(checkRecords, Problem, fmt.Sprintf("record %q can't be used: %v", n.Stream, n.Err),
			"the next start goes on without it; look for a failing disk")...)
	}
	if found == nil {
		return fine(checkRecords, "every record can be read")
	}
	return found
}

func baseline(f *Facts) []Finding {
	if f.Baseline.None {
		return one(checkBaseline, Problem,
			"no local config is named: it is what is left when no other config works, and the agent refuses to start without",
			"name the config that the node was provisioned with: --init-config")
	}
	if e := f.Explanation; e != nil && e.Next.Refuse != nil {
		return one(checkBaseline, Problem, "the next start refuses: "+e.Next.Refuse.Error(),
			"repair the local config on this node; no config from elsewhere can stand in for it")
	}
	if len(f.Baseline.Ignored) > 0 {
		return one(checkBaseline, Note, fmt.Sprintf("the init directory has files that are not read: %q", f.Baseline.Ignored),
			"take them away, or name one of them with --key")
	}
	if f.Explanation == nil || f.Explanation.Next.Role == "" {
		return nil
	}
	return fine(checkBaseline, fmt.Sprintf("the local config (%s) is good", f.Explanation.Next.Origin))
}

func source(f *Facts) []Finding {
	if sourceless(f) {
		if s := f.Server; s != nil && s.Names {
			return one(checkSource, Problem, fmt.Sprintf("the %s of this node names a config, and the agent doesn't look at it",
				s.Kind), "start the agent with --source, or take the name away")
		}
		return one(checkSource, Note, "no source is given: the node keeps to what it has", "")
	}
	if f.Explanation == nil {
		return nil
	}
	d := f.Explanation.State.Desired
	since := ""
	if !d.At.IsZero() {
		since = ", since " + d.At.UTC().Format(time.RFC3339)
	}
	switch d.Kind {
	case lkg.DesiredUnknown:
		return one(checkSource, Problem,
			"the source was never seen: no agent on this state directory has had an answer from it",
			"see the checks agent, server and rights; also beliefs of another version of the agent don't count here")
	case lkg.DesiredCorrect:
		return fine(checkSource, "it names a config that is there"+since)
	case lkg.DesiredEmpty:
		return one(checkSource, Note, "it names no config, so the local one is wanted"+since, "")
	}
	return one(checkSource, Problem, fmt.Sprintf("the wanted config is unclear (%s)%s: %s", d.Kind, since, d.Cause),
		remedies(d.Kind))
}

// remedies say what helps against each trouble with a source.
func remedies(k lkg.OutcomeKind) string {
	switch k {
	case lkg.DesiredInvalid:
		return "set exactly one kind of source, with namespace and name"
	case lkg.DesiredMissing:
		return "create the object that is named, or name another; it may also lie in another namespace"
	case lkg.DesiredMismatch:
		return "name the UID or the digest of the object that is there, or make it immutable"
	case lkg.DesiredForbidden:
		return "give the agent the right to get that object: configsync/kube.ConfigMapRules has it"
	default:
		return "see the check server: address, network, certificates; and proof, where a config could not be judged"
	}
}

func server(f *Facts) []Finding {
	s := f.Server
	switch {
	case s == nil:
		return nil
	case s.Err != nil:
		return one(checkServer, Problem, fmt.Sprintf("the API server gives no answer: %v", s.Err),
			"check the kubeconfig and the network; the node goes on with what it has")
	case s.NotServed:
		return one(checkServer, Problem, fmt.Sprintf("the API server doesn't know the kind %s", s.Kind),
			"install its CustomResourceDefinition: kubectl apply --server-side -k examples/manifests/crds")
	case s.Absent && s.Awaited:
		return one(checkServer, Note, fmt.Sprintf("there is no %s of this node: no Rollout has selected it yet", s.Kind), "")
	case s.Absent:
		return one(checkServer, Problem, fmt.Sprintf("there is no %s of this node", s.Kind),
			"create it with the name of the node, or start the agent with another --source or --node-name")
	case len(s.Drops) > 0:
		return one(checkServer, Problem, fmt.Sprintf("the API server drops what is written to %s: %s", s.Kind, list(s.Drops)),
			"install the CustomResourceDefinition of this version, or use another kind of source")
	default:
		return fine(checkServer, "it answers")
	}
}

func rights(f *Facts) []Finding {
	s := f.Server
	switch {
	case s == nil || s.Err != nil:
		return nil
	case s.Unasked != nil:
		return one(checkRights, Unknown, fmt.Sprintf("what the agent may do can't be asked: %v", s.Unasked),
			"ask with kubectl auth can-i --as")
	case len(s.Denied) > 0:
		return one(checkRights, Problem, "the agent may not "+list(s.Denied),
			"bind the rules that configsync/kube and rollout/kube name for its parts to the agent's user; for kubelets' certificates examples/manifests/host-agent has them")
	default:
		return fine(checkRights, "the agent may do what it has to")
	}
}

func config(f *Facts) []Finding {
	e := f.Explanation
	if e == nil || e.Next.Role == "" {
		return nil
	}
	if a := e.Next.Alarm; a != "" {
		return one(checkConfig, Problem, "nothing is left to fall back to: "+a,
			"look at the child's log; repair the local config, or assign a config that works")
	}
	if r := e.Next.Rejected; r != nil {
		found := one(checkConfig, Problem, fmt.Sprintf("the assigned config is avoided, and the node uses %s: %s",
			nameRole(e.Next.Role), describeAvoided(r)), stepAfter(f, r))
		found[0].Lines = r.Last
		return found
	}
	return fine(checkConfig, "next start: "+e.Next.Condition.Message)
}

// nameRole names what a node falls back to.
func nameRole(r lkg.Role) string {
	switch r {
	case lkg.RoleLastKnownGood:
		return "the last known good one"
	case lkg.RolePrevious:
		return "the one that was good before the last known good one"
	default:
		return "the local one"
	}
}

// stepAfter is what to do about a rejected config.
func stepAfter(f *Facts, r *lkg.BadEntry) string {
	retry := "belay-agent forget-bad " + r.Ref.UID
	if f.Dir != nil {
		retry += " --state-dir=" + f.Dir.Path
	}
	step := hintFor(slices.Concat(r.Last, []string{r.Evidence})...)
	switch {
	case step == "":
		return "assign a new version; or have this one tried again: " + retry
	case step == startRuntime:
		step = nameRuntime
	case strings.Contains(r.Evidence, tooLarge):
		return step
	}
	return step + "; if the config stays as it is, have it tried again: " + retry
}

// describeAvoided is the reason of a rejection with its evidence.
func describeAvoided(r *lkg.BadEntry) string {
	if r.Evidence == "" {
		return r.Reason
	}
	return r.Reason + "; detail: " + r.Evidence
}

// proof says that nothing new is adopted.
func proof(f *Facts) []Finding {
	if f.Proof == nil {
		return nil
	}
	return one(checkProof, Problem, "new configs wait, as what proves them can't: "+f.Proof.Error(),
		"put the program in its place, writable for root alone; what is in use goes on, and no config is rejected for this")
}

func trial(f *Facts) []Finding {
	e := f.Explanation
	if e == nil || !e.State.OnTrial() || e.Next.Rejected != nil {
		return nil
	}
	since := e.State.Current.At
	if !Overdue(since, e.Limits.Trial, f.Now) {
		return one(checkTrial, Note, "the assigned config is on trial, since "+since.UTC().Format(time.RFC3339), "")
	}
	what := fmt.Sprintf("the assigned config is on trial since %s, neither promoted nor rejected; healthy so far: %s",
		since.UTC().Format(time.RFC3339), e.State.Soak.Accumulated.Round(time.Second))
	if f.Child != nil && len(f.Child.Failing) > 0 {
		what += "; failing now: " + list(f.Child.Failing)
	}
	return one(checkTrial, Problem, what,
		"see which probes fail, and whether the child keeps restarting; promote nothing by hand that is not healthy")
}
