// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// causeChance is how often at most [Causes] names anything for failures that have nothing to do with any attribute.
const causeChance = 0.01

// causesShown is how many of them a message names.
const causesShown = 3

// A Cause is an attribute that nodes which failed have more often than nodes which succeeded, and more often than chance explains. It is
// where to look first; it proves nothing, as attributes come together: the nodes with the new kernel may all be in one zone.
type Cause struct {
	// Attribute and Value say what those nodes have in common; Absent means that they have no such attribute.
	Attribute, Value string
	Absent           bool
	// FailedWith of the Failed nodes have it, and SucceededWith of the Succeeded ones.
	FailedWith, Failed, SucceededWith, Succeeded int
	// Chance is how likely at least so many of the failed nodes have it if it has nothing to do with the failures.
	Chance float64
}

// String says it in one clause.
func (c Cause) String() string {
	what := fmt.Sprintf("%s %q", c.Attribute, c.Value)
	if c.Absent {
		what = "no " + c.Attribute
	}
	return fmt.Sprintf("%d of %d failed nodes have %s, and %d of %d that succeeded", c.FailedWith, c.Failed, what, c.SucceededWith, c.Succeeded)
}

// Causes compares the attributes of the nodes that failed with those of the nodes that succeeded, for the message of a freeze: labels such as
// zone and instance type, facts such as the kernel. It returns those that stand out, the clearest first, and of those that are equally
// clear all, by name. Nodes that neither failed nor succeeded have no place in it.
//
// Each value of each attribute is tested by Fisher's exact test, one-sided, and all together are kept from saying anything by mere
// chance more often than in one rollout of 100. Attributes that can't tell anything, as the host name, cost the others nothing.
func Causes(failed, succeeded []map[string]string) []Cause {
	causes := causesSeen(failed, succeeded)
	n := len(failed) + len(succeeded)
	level := causeLevel(causes, n)
	found := causes[:0]
	for _, c := range causes {
		if c.Chance = causeTail(n, c.FailedWith+c.SucceededWith, c.Failed, c.FailedWith); c.Chance <= level {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(a.Chance, b.Chance), strings.Compare(a.Attribute, b.Attribute), strings.Compare(a.Value, b.Value))
	})
	return found
}

// causesText is what a freeze says of the causes; empty if there are none.
func causesText(causes []Cause) string {
	var parts []string
	for _, c := range causes[:min(len(causes), causesShown)] {
		parts = append(parts, c.String())
	}
	return strings.Join(parts, "; ")
}

// causesSeen counts every value of every attribute, in no order. That a node lacks an attribute is one, if others have it.
func causesSeen(failed, succeeded []map[string]string) []Cause {
	type key struct {
		attribute, value string
		absent           bool
	}
	attributes := map[string]bool{}
	for _, node := range slices.Concat(failed, succeeded) {
		for attribute := range node {
			attributes[attribute] = true
		}
	}
	index := map[key]int{}
	var causes []Cause
	add := func(node map[string]string, ofFailed, ofSucceeded int) {
		for attribute := range attributes {
			value, present := node[attribute]
			k := key{attribute, value, !present}
			i, ok := index[k]
			if !ok {
				i, index[k] = len(causes), len(causes)
				causes = append(causes, Cause{Attribute: attribute, Value: value, Absent: !present, Failed: len(failed), Succeeded: len(succeeded)})
			}
			causes[i].FailedWith += ofFailed
			causes[i].SucceededWith += ofSucceeded
		}
	}
	for _, node := range failed {
		add(node, 1, 0)
	}
	for _, node := range succeeded {
		add(node, 0, 1)
	}
	return causes
}

// causeLevel is the chance that one test may have so that all of them together have no more than causeChance: the same share for each, by
// Bonferroni's inequality, of those tests that can come below their share at all. The others never name anything, so they
// need none (Tarone, 1990).
func causeLevel(causes []Cause, nodes int) float64 {
	best := make([]float64, len(causes))
	for i, c := range causes {
		with := c.FailedWith + c.SucceededWith
		best[i] = causeTail(nodes, with, c.Failed, min(with, c.Failed))
	}
	slices.Sort(best)
	for shares := 1; shares < len(best); shares++ {
		// With one of them more than there are shares, a larger number of shares has to do.
		if best[shares] > causeChance/float64(shares) {
			return causeChance / float64(shares)
		}
	}
	return causeChance / float64(max(1, len(best)))
}

// causeTail is the probability that at least failedWith of the failed nodes are among the ones with the attribute, if the failed ones are a random
// sample of all nodes: the upper tail of the hypergeometric distribution.
func causeTail(nodes, with, failed, failedWith int) float64 {
	all, sum := causeLogChoose(nodes, failed), 0.0
	// Each term by itself: the first ones may be too small to be a number, and what follows from them would be zero.
	for x := max(failedWith, with+failed-nodes); x <= min(with, failed); x++ {
		sum += math.Exp(causeLogChoose(with, x) + causeLogChoose(nodes-with, failed-x) - all)
	}
	return min(1, sum)
}

func causeLogChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
