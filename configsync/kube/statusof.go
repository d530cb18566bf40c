// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/utils/ptr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/lkg"
)

// The bounds of what is reported. They are those of the CustomResourceDefinition, in bytes and entries.
const (
	maxText  = 4096
	maxLine  = 1024
	maxItems = 16
)

// StatusOf returns s as the status of a NodeConfig, or of another object that embeds it. It is pure. before is the
// status that is to be replaced: the transition time of its ConfigOK condition stays unless the status, the reason or
// the message is another. The result holds no condition but ConfigOK. Texts and lists are cut to what the API server
// accepts.
func StatusOf(s configsync.Status, before v1alpha1.NodeConfigStatus, now time.Time) v1alpha1.NodeConfigStatus {
	return v1alpha1.NodeConfigStatus{
		ObservedGeneration: s.ObservedGeneration,
		Assigned:           configOf(s.Assigned, s.Local),
		Active:             configOf(s.Active, s.Local),
		LastKnownGood:      configOf(s.LastKnownGood, s.Local),
		Rejected:           rejectedOf(s.Rejected),
		Trial:              trialOf(s.Trial),
		Error:              clip(s.Error, maxText),
		Alarm:              clip(s.Alarm, maxText),
		Conditions:         []metav1.Condition{conditionOf(s, before.Conditions, now)},
	}
}

// conditionOf sums s up. The literal texts are both in the message: a reason must be a word.
func conditionOf(s configsync.Status, before []metav1.Condition, now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionConfigOK, Status: metav1.ConditionStatus(s.Condition.Status), Reason: reasonOf(s),
		Message:            clip(s.Condition.Message+": "+s.Condition.Reason+evidenceOf(s), maxText),
		ObservedGeneration: s.ObservedGeneration, LastTransitionTime: seconds(now),
	}
	for _, b := range before {
		if b.Type == c.Type && b.Status == c.Status && b.Reason == c.Reason && b.Message == c.Message {
			c.LastTransitionTime = b.LastTransitionTime
		}
	}
	return c
}

// evidenceOf returns the evidence behind a condition whose reason is that of a rejection, such as the size of an object
// that is too large and the limit.
func evidenceOf(s configsync.Status) string {
	for _, e := range s.Rejected {
		if e.Evidence != "" && e.Reason == s.Condition.Reason && s.Condition.Status == lkg.StatusFalse {
			return ": " + e.Evidence
		}
	}
	return ""
}

// reasonOf is the cause in one word. It rests on the facts, never on texts.
func reasonOf(s configsync.Status) string {
	switch {
	case s.Alarm != "":
		return v1alpha1.ReasonAlarm
	case s.Condition.Status == lkg.StatusFalse:
		return v1alpha1.ReasonRejected
	case s.Condition.Status == lkg.StatusUnknown:
		return v1alpha1.ReasonDesiredUnclear
	case s.Active.IsLocal():
		return v1alpha1.ReasonUsingLocal
	case s.Trial != nil:
		return v1alpha1.ReasonOnTrial
	default:
		return v1alpha1.ReasonUsingCurrent
	}
}

// configOf shows the local config explicitly, so that it can't be taken for a missing answer.
func configOf(r lkg.Ref, local string) *v1alpha1.Config {
	if !r.IsLocal() {
		return &v1alpha1.Config{Display: clip(r.Namespace+"/"+r.Name, maxLine/2), ConfigMapRef: ptr.To(resolved(r))}
	}
	if local == "" {
		local = string(v1alpha1.LocalDefault)
	}
	return &v1alpha1.Config{Display: "local (" + local + ")", Local: v1alpha1.Local(local)}
}

func resolved(r lkg.Ref) v1alpha1.ResolvedConfigMapRef {
	return v1alpha1.ResolvedConfigMapRef{
		Namespace: r.Namespace, Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion, Key: r.Key, Digest: r.Digest,
	}
}

func rejectedOf(entries []lkg.BadEntry) []v1alpha1.RejectedConfig {
	var out []v1alpha1.RejectedConfig
	for _, e := range entries[:min(len(entries), maxItems)] {
		out = append(out, v1alpha1.RejectedConfig{
			ResolvedConfigMapRef: resolved(e.Ref), Time: seconds(e.Time),
			Reason: clip(e.Reason, maxText), Evidence: clip(e.Evidence, maxText),
		})
	}
	return out
}

func trialOf(t *configsync.TrialStatus) *v1alpha1.Trial {
	if t == nil {
		return nil
	}
	return &v1alpha1.Trial{
		Since:          seconds(t.Since),
		NeededSeconds:  int64(t.Needed / time.Second),
		HealthySeconds: int64(tenths(t.Healthy, t.Needed) / time.Second),
		CountedStarts:  int32(min(t.Counted, 1<<16)),
		AllowedStarts:  int32(min(t.Allowed, 1<<16)),
		Ignored:        newest(t.Ignored),
		Failing:        lines(t.Failing),
	}
}

// tenths rounds d down to a tenth of whole.
func tenths(d, whole time.Duration) time.Duration {
	if step := whole / 10; step > 0 {
		return d.Truncate(step)
	}
	return d
}

// newest keeps the last lines, as those before are older.
func newest(all []string) []string { return lines(all[max(0, len(all)-maxItems):]) }

func lines(all []string) []string {
	var out []string
	for _, l := range all[:min(len(all), maxItems)] {
		out = append(out, clip(l, maxLine))
	}
	return out
}

// seconds drops what the API server would drop, so that what is written equals what is read back.
func seconds(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

// clip cuts s to at most limit bytes of valid UTF-8, and marks the cut.
func clip(s string, limit int) string {
	const mark = "…"
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
