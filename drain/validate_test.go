// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
)

func validRequest() drain.Request {
	return drain.Request{Node: "n1", Holder: "rollout/kernel", Maintenance: "m1", Mode: drain.Drain}
}

// wantErrors checks that an error has exactly these lines, each given by a part of it.
func wantErrors(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		if len(parts) > 0 {
			t.Errorf("got no error, want %q", parts)
		}
		return
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(parts) {
		t.Errorf("got %d errors, want %d:\n%v", len(lines), len(parts), err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q in it", err, part)
		}
	}
}

// The zero policy is the safe one, and valid; so is one with everything set.
func TestValidPolicies(t *testing.T) {
	low, high, settle := int32(-5), int32(5), time.Duration(0)
	full := drain.Policy{
		Rules: []drain.Rule{
			{Name: "vm", Namespaces: []string{"vms"}, Selector: &metav1.LabelSelector{}, OwnerKinds: []string{"VirtualMachine"}, MinPriority: &low, MaxPriority: &high,
				Behavior: drain.BehaviorHook, Hooks: []string{"migrate", "drain.example/save"}, Tier: -3, Deadline: time.Hour},
			{Hooks: []string{"migrate"}}, {Behavior: drain.BehaviorEvict}, {Behavior: drain.BehaviorSkip}, {Behavior: drain.BehaviorWaitCompleted},
		},
		DaemonSets: drain.LastDaemonSets, LocalData: drain.EvictPods, LocalDataLimit: 1, Unmanaged: "Block", Tolerating: drain.EvictPods,
		GracePeriodSeconds: seconds(1), TierDeadline: 1, Settle: &settle, VolumeDeadline: 1, Soak: 1, OutsideWindow: drain.UndoCordon, Uncordoned: drain.Recordon,
		Escalation: []drain.Escalation{{After: 1, Step: drain.StepDelete, GracePeriodSeconds: seconds(1)}, {After: 2, Step: drain.StepOutOfService}},
		Windows:    []drain.Window{{}, {From: planStart()}, {Until: planStart()}, {From: planStart(), Until: planStart().Add(1)}},
	}
	for _, p := range []drain.Policy{{}, full} {
		wantErrors(t, p.Validate())
	}
}

// Each error names the field, what it holds, and what would be right.
func TestInvalidPolicies(t *testing.T) {
	low, high, minus := int32(-5), int32(5), time.Duration(-1)
	rules := func(r ...drain.Rule) drain.Policy { return drain.Policy{Rules: r} }
	ladder := func(e ...drain.Escalation) drain.Policy { return drain.Policy{Escalation: e} }
	for name, tc := range map[string]struct {
		policy drain.Policy
		parts  []string
	}{
		"words": {drain.Policy{DaemonSets: "First", LocalData: "evict", Unmanaged: "Skip", Tolerating: "Last", OutsideWindow: "Keep", Uncordoned: "Fight"}, []string{
			`daemonSets is "First", want "Skip" or "Last"`, `localData is "evict", want "Block" or "Evict"`, `unmanaged is "Skip"`, `tolerating is "Last"`,
			`outsideWindow is "Keep", want "Hold" or "Undo"`, `uncordoned is "Fight", want "Pause" or "Recordon"`}},
		"negative": {drain.Policy{LocalDataLimit: -1, TierDeadline: -1, Settle: &minus, VolumeDeadline: -1, Soak: -time.Second}, []string{
			"localDataLimit is -1, want at least 0 bytes", "tierDeadline is -1ns, want at least 0s", "settle is -1ns", "volumeDeadline is -1ns", "soak is -1s"}},
		"grace": {drain.Policy{GracePeriodSeconds: seconds(0), Escalation: []drain.Escalation{{After: 1, Step: drain.StepDelete, GracePeriodSeconds: seconds(-1)}}}, []string{
			"drain: gracePeriodSeconds is 0, want at least 1 second", "escalation[0].gracePeriodSeconds is -1"}},
		"names in rules": {rules(drain.Rule{Namespaces: []string{"a", ""}, OwnerKinds: []string{""}}), []string{"rules[0].namespaces[1] is empty", "rules[0].ownerKinds[0] is empty"}},
		"selector": {rules(drain.Rule{}, drain.Rule{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}}),
			[]string{"rules[1].selector cannot be read"}},
		"priority":    {rules(drain.Rule{MinPriority: &high, MaxPriority: &low}), []string{"rules[0].minPriority is 5, want at most maxPriority, -5"}},
		"behavior":    {rules(drain.Rule{Behavior: "Evct"}), []string{`rules[0].behavior is "Evct", want "Evict", "Skip", "WaitCompleted", "Hook" or "Block"`}},
		"tier":        {rules(drain.Rule{Tier: 1<<31 - 1}), []string{"rules[0].tier is 2147483647"}},
		"deadline":    {rules(drain.Rule{Deadline: -1}), []string{"rules[0].deadline is -1ns"}},
		"no hooks":    {rules(drain.Rule{Behavior: drain.BehaviorHook}), []string{"rules[0].hooks is empty"}},
		"idle hooks":  {rules(drain.Rule{Behavior: drain.BehaviorSkip, Hooks: []string{"a"}}), []string{`rules[0].hooks has 1 names, which behavior "Skip" never asks`}},
		"hooks twice": {rules(drain.Rule{Behavior: drain.BehaviorHook, Hooks: []string{"a", "b c", "a", ""}}), []string{`hooks[1] is "b c"`, `hooks[2] is "a", which stands in the list before`, `hooks[3] is ""`}},
		"step":        {ladder(drain.Escalation{After: 1, Step: drain.StepEvict}), []string{`escalation[0].step is "Evict", want "Delete" or "OutOfService"`}},
		"at once":     {ladder(drain.Escalation{Step: drain.StepDelete}), []string{"escalation[0].after is 0s, want more than 0s"}},
		"not in order": {ladder(drain.Escalation{After: 2, Step: drain.StepOutOfService, GracePeriodSeconds: seconds(1)}, drain.Escalation{After: 2, Step: drain.StepDelete}), []string{
			"escalation[1].after is 2ns, want more than the 2ns of the step before", `escalation[1].step is "Delete" after "OutOfService"`, "escalation[0].gracePeriodSeconds is 1, want none"}},
		"window": {drain.Policy{Windows: []drain.Window{{From: planStart(), Until: planStart()}}}, []string{"windows[0] is from 2026-08-01T12:00:00Z until 2026-08-01T12:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) { wantErrors(t, tc.policy.Validate(), tc.parts...) })
	}
}

func TestRequestsAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*drain.Request)
		parts  []string
	}{
		"valid":               {func(*drain.Request) {}, nil},
		"release":             {func(r *drain.Request) { r.Mode, r.Maintenance = drain.Release, "" }, nil},
		"hold":                {func(r *drain.Request) { r.Mode, r.HoldUntil = drain.Hold, planStart() }, nil},
		"its own last status": {func(r *drain.Request) { r.Last = &drain.Status{Node: "n1"} }, nil},
		"empty":               {func(r *drain.Request) { *r = drain.Request{} }, []string{"node is empty", "holder is empty", `mode is "", want "Cordon", "Drain", "Hold" or "Release"`}},
		"hold without an end": {func(r *drain.Request) { r.Mode = drain.Hold }, []string{"holdUntil is not set, mode \"Hold\" wants a time at most 4h0m0s away"}},
		"another's status":    {func(r *drain.Request) { r.Last = &drain.Status{Node: "n2"} }, []string{`last is the status of node "n2", want the one of "n1"`}},
		"long names":          {func(r *drain.Request) { r.Holder, r.Maintenance = strings.Repeat("h", 254), "a\nb" }, []string{"holder has 254 bytes, want at most 253", "maintenance has an unprintable character at byte 1"}},
		"policy":              {func(r *drain.Request) { r.Policy.Soak = -1 }, []string{"drain: policy.soak is -1ns"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := validRequest()
			tc.change(&r)
			wantErrors(t, r.Validate(), tc.parts...)
		})
	}
}

func TestSetsAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*drain.Set)
		parts  []string
	}{
		"valid":           {func(s *drain.Set) { s.Request.Node = "" }, nil},
		"a percent":       {func(s *drain.Set) { s.MaxNodes = intstr.FromString("20%") }, nil},
		"no nodes":        {func(s *drain.Set) { s.Groups = [][]string{{}} }, []string{"groups names no node"}},
		"a node twice":    {func(s *drain.Set) { s.Groups = [][]string{{"a", ""}, {"a"}} }, []string{"groups[0][1] is empty", `groups[1][0] is "a", which stands in the set before`}},
		"negative time":   {func(s *drain.Set) { s.NodeTimeout = -time.Second }, []string{"nodeTimeout is -1s"}},
		"negative":        {func(s *drain.Set) { s.MaxNodes = intstr.FromInt32(-1) }, []string{"maxNodes is -1"}},
		"not a percent":   {func(s *drain.Set) { s.MaxNodes = intstr.FromString("20") }, []string{`maxNodes is "20"`}},
		"too many":        {func(s *drain.Set) { s.MaxNodes = intstr.FromString("101%") }, []string{`maxNodes is "101%"`}},
		"its request too": {func(s *drain.Set) { s.Request.Holder = ""; s.Request.Policy.Soak = -1 }, []string{"request.holder is empty", "request.policy.soak is -1ns"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := drain.Set{Request: validRequest(), Groups: [][]string{{"a", "b"}, {"c"}}}
			tc.change(&s)
			wantErrors(t, s.Validate(), tc.parts...)
		})
	}
}
