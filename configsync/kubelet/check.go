// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Warnings returns what a kubelet accepts in a document and what harms the node or its pods all the same, one
// sentence each, in the order of the fields. A document that cannot be read has no warnings. No sentence holds a text
// value of the document.
func Warnings(doc []byte) (all []string) {
	raw, err := toJSON(doc)
	if err != nil {
		return nil
	}
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	for _, h := range harms {
		if h.found(valueAt(fields, h.field)) {
			all = append(all, h.field+" "+h.why)
		}
	}
	all = append(all, thresholdWarnings(fields)...)
	slices.Sort(all)
	return all
}

// A harm is a value of one field that a kubelet accepts.
type harm struct {
	field string // its path, with dots
	found func(v any) bool
	why   string // completes a sentence that begins with the field
}

// harms are the known ones. What only another field or the machine makes harmful is not here.
var harms = []harm{
	{"authentication.anonymous.enabled", isValue(true),
		"is true: everybody who reaches the port may ask, as far as authorization allows"},
	{"authorization.mode", isValue("AlwaysAllow"),
		"is AlwaysAllow: everybody who is authenticated may run commands in each pod"},
	{"cgroupsPerQOS", isValue(false), "is false: nothing keeps pods from the resources of the system"},
	{"containerLogMaxSize", quantityBelow("1Mi"), "is less than 1Mi: logs are rotated all the time, and lines are lost"},
	{"enableControllerAttachDetach", isValue(false), "is false: volumes stay attached to this node when it dies"},
	{"enableServer", isValue(false), "is false: kubectl logs, kubectl exec and metrics do not work"},
	{"evictionPressureTransitionPeriod", durationFrom(time.Hour),
		"is an hour or more: the node takes no pods for that long after each pressure"},
	{"fileCheckFrequency", durationFrom(time.Hour), "is an hour or more: static pods follow their files that late"},
	{"healthzPort", isValue(0.0), "is 0: nothing can ask whether the kubelet is well"},
	{"imageGCHighThresholdPercent", isFrom(100), "is 100: unused images are never removed, and the disk runs full"},
	{"imageGCHighThresholdPercent", isBelow(50), "is less than 50: images are removed and pulled again all the time"},
	{"maxOpenFiles", isBelow(4096), "is less than 4096: the kubelet fails with many pods"},
	{"maxPods", isBelow(10), "is less than 10: pods that run here and do not fit are failed, those of the system too"},
	{"maxPods", isFrom(1000), "is 1000 or more: no kubelet is tested with so many pods"},
	{"nodeLeaseDurationSeconds", isFrom(300),
		"is 5 minutes or more: the lease is renewed so rarely that the node is taken for dead"},
	{"nodeStatusMaxImages", isValue(0.0), "is 0: the scheduler sees no image of this node"},
	{"nodeStatusUpdateFrequency", durationFrom(5 * time.Minute),
		"is 5 minutes or more: the node is seen as it was that long ago"},
	{"oomScoreAdj", isFrom(0), "is 0 or more: the kernel kills the kubelet before the pods when memory runs out"},
	{"podPidsLimit", isBetween(0, 100), "is less than 100: most programs cannot start their threads"},
	{"podsPerCore", isBetween(0, 4), "is less than 4: it lowers maxPods, and pods that do not fit are failed"},
	{"readOnlyPort", isFrom(1), "is set: everybody who reaches the port may read all pods"},
	{"registerNode", isValue(false), "is false: the kubelet makes no Node object"},
	{"rotateCertificates", isValue(false), "is false: the node is lost when its client certificate ends"},
	{"runtimeRequestTimeout", durationBelow(30 * time.Second),
		"is less than 30 s: calls of a busy runtime fail, and are repeated"},
	{"serializeImagePulls", isValue(true), "is true: one slow image delays all others"},
	{"staticPodURL", hasPrefix("http://"), "begins with http://: everybody on the way may run pods on this node"},
	{"streamingConnectionIdleTimeout", durationBelow(time.Minute),
		"is less than a minute: kubectl exec and port-forward end while they are used"},
	{"syncFrequency", durationFrom(10 * time.Minute), "is 10 minutes or more: what was missed is repaired that late"},
	{"volumeStatsAggPeriod", durationBelow(10 * time.Second),
		"is less than 10 s: the disk is read all the time, or never if it is negative"},
}

// valueAt returns the value at a path of names with dots between; nil if there is none.
func valueAt(fields map[string]any, path string) any {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return fields[name]
	}
	inner, _ := fields[name].(map[string]any)
	return valueAt(inner, rest)
}

func isValue(want any) func(any) bool { return func(v any) bool { return v == want } }

func isFrom(low float64) func(any) bool {
	return func(v any) bool { n, ok := v.(float64); return ok && n >= low }
}

func isBelow(high float64) func(any) bool {
	return func(v any) bool { n, ok := v.(float64); return ok && n < high }
}

// isBetween excludes both ends.
func isBetween(low, high float64) func(any) bool {
	return func(v any) bool { n, ok := v.(float64); return ok && n > low && n < high }
}

func hasPrefix(p string) func(any) bool {
	return func(v any) bool { s, ok := v.(string); return ok && strings.HasPrefix(s, p) }
}

func durationFrom(low time.Duration) func(any) bool {
	return func(v any) bool { d, ok := durationOf(v); return ok && d >= low }
}

// durationBelow leaves out 0, which means the kubelet's default.
func durationBelow(high time.Duration) func(any) bool {
	return func(v any) bool { d, ok := durationOf(v); return ok && d != 0 && d < high }
}

func durationOf(v any) (time.Duration, bool) {
	s, _ := v.(string)
	d, err := time.ParseDuration(s)
	return d, err == nil
}

func quantityBelow(high string) func(any) bool {
	return func(v any) bool {
		s, _ := v.(string)
		q, err := resource.ParseQuantity(s)
		return err == nil && q.Cmp(resource.MustParse(high)) < 0
	}
}

// mostPercent is the highest threshold, in percent, that leaves pods room to run.
const mostPercent = 90

// thresholdWarnings compares the thresholds of evictions.
func thresholdWarnings(fields map[string]any) (all []string) {
	hard, soft := thresholdsOf(fields, "evictionHard"), thresholdsOf(fields, "evictionSoft")
	for _, name := range []string{"evictionHard", "evictionSoft"} {
		for _, signal := range slices.Sorted(maps.Keys(thresholdsOf(fields, name))) {
			if p, ok := percentOf(thresholdsOf(fields, name)[signal]); ok && p >= mostPercent {
				all = append(all, fmt.Sprintf("%s[%s] is %d%% or more: almost every pod is evicted", name, signal, mostPercent))
			}
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(soft)) {
		if order, ok := compareThresholds(soft[signal], hard[signal]); ok && order <= 0 {
			all = append(all, fmt.Sprintf("evictionSoft[%s] is not above evictionHard: pods are killed at once "+
				"before the soft threshold gives them time", signal))
		}
	}
	if _, set := fields["evictionHard"].(map[string]any); set && hard["memory.available"] == "" &&
		fields["mergeDefaultEvictionSettings"] != true {
		all = append(all, "evictionHard has no memory.available: the list replaces all defaults, "+
			"and the kernel kills processes when memory runs out")
	}
	return all
}

func thresholdsOf(fields map[string]any, name string) map[string]string {
	m, _ := fields[name].(map[string]any)
	all := map[string]string{}
	for signal, v := range m {
		if s, ok := v.(string); ok {
			all[signal] = s
		}
	}
	return all
}

func percentOf(s string) (float64, bool) {
	digits, ok := strings.CutSuffix(s, "%")
	n, err := strconv.ParseFloat(digits, 64)
	return n, ok && err == nil
}

// compareThresholds compares two thresholds of one unit; ok is false for others.
func compareThresholds(a, b string) (order int, ok bool) {
	p, isPercent := percentOf(a)
	q, isToo := percentOf(b)
	if isPercent && isToo {
		return cmp.Compare(p, q), true
	}
	x, errX := resource.ParseQuantity(a)
	y, errY := resource.ParseQuantity(b)
	return x.Cmp(y), errX == nil && errY == nil
}
