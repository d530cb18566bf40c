// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Bounds of a baseline.
const (
	mostWork    = 200
	mostDaemons = 60
	mostBad     = 10
)

// A baseline is what a node was like before: its bad conditions, and, by the digests of their names, the DaemonSets that had a ready pod there and
// how many ready pods the other workloads had. All are sorted.
type baseline struct {
	bad     []string
	daemons []string
	work    []readyPods
}

// readyPods is how many ready pods a workload has.
type readyPods struct {
	digest string
	ready  int
}

// baselineForm begins each baseline: another form has another number.
const baselineForm = "1"

// String is the form that [readBaseline] reads.
func (b baseline) String() string {
	words := []string{baselineForm}
	for _, c := range b.bad {
		words = append(words, "bad="+c)
	}
	for _, d := range b.daemons {
		words = append(words, "ds="+d)
	}
	for _, w := range b.work {
		words = append(words, w.digest+"="+strconv.Itoa(w.ready))
	}
	return strings.Join(words, " ")
}

func readBaseline(text string) (b baseline, err error) {
	words := strings.Split(text, " ")
	if words[0] != baselineForm {
		return b, fmt.Errorf("it has the form %q, want %q", words[0], baselineForm)
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "bad":
			b.bad = append(b.bad, value)
		case "ds":
			b.daemons = append(b.daemons, value)
		default:
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || len(key) != digestLength {
				return b, fmt.Errorf("%q is neither a condition nor a DaemonSet nor a workload", word)
			}
			b.work = append(b.work, readyPods{key, n})
		}
	}
	return b, nil
}

// baseline is what a node is like.
func (h *healthJudge) baseline(node *corev1.Node) (b baseline) {
	for _, c := range h.bad(node) {
		if c.Type != corev1.NodeReady { // without that it never comes back
			b.bad = append(b.bad, string(c.Type))
		}
	}
	daemons, work := map[string]bool{}, map[string]bool{}
	for _, pod := range h.seen.onNode(node.Name) {
		w, ok := workloadOf(pod)
		switch {
		case !ok || !counts(pod) || h.ignores(pod):
		case w.kind == daemonSet:
			daemons[w.digest()] = true
		default:
			work[w.digest()] = true
		}
	}
	slices.Sort(b.bad)
	b.bad = first(b.bad, mostBad)
	b.daemons = first(slices.Sorted(maps.Keys(daemons)), mostDaemons)
	for _, digest := range first(slices.Sorted(maps.Keys(work)), mostWork) {
		ready, _, _ := h.seen.podsOf(digest)
		b.work = append(b.work, readyPods{digest, ready})
	}
	return b
}

func first(all []string, most int) []string { return all[:min(most, len(all))] }

// daemonsMissing names the DaemonSets without a ready pod on a node where they had one, and should have one.
func (h *healthJudge) daemonsMissing(node *corev1.Node, then []string) (missing []string) {
	here := map[string]bool{}
	for _, pod := range h.seen.onNode(node.Name) {
		if w, ok := workloadOf(pod); ok && w.kind == daemonSet && counts(pod) {
			here[w.digest()] = true
		}
	}
	for _, digest := range then {
		if here[digest] {
			continue
		}
		for _, set := range indexed[*appsv1.DaemonSet](h.seen.daemonSets, byWorkload, digest) {
			if selects(set, node) {
				missing = append(missing, set.Namespace+"/"+set.Name)
			}
		}
	}
	return missing
}

// selects reports whether the pods of a DaemonSet belong on a node, by its node selector.
func selects(set *appsv1.DaemonSet, node *corev1.Node) bool {
	for key, value := range set.Spec.Template.Spec.NodeSelector {
		if is, there := node.Labels[key]; !there || is != value {
			return false
		}
	}
	return set.DeletionTimestamp == nil
}

// workMissing says which workloads have fewer ready pods than they had, and than are asked for.
func (h *healthJudge) workMissing(then []readyPods) (missing []string) {
	for _, was := range then {
		ready, there, name := h.seen.podsOf(was.digest)
		want := there
		if asked, by, known := h.seen.asked(was.digest); known {
			want, name = asked, by
		}
		if want = min(want, was.ready); ready < want {
			missing = append(missing, fmt.Sprintf("%s has %d ready pods, want %d: it had %d before", name, ready, want, was.ready))
		}
	}
	return missing
}
