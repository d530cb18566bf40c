// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A grouper finds, of random groups that select by any operator, by names, or by nothing, what asking each of them in turn finds.
func TestGrouperIsAskingEach(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	found := map[bool]int{}
	for round := range 300 {
		groups := make([]Group, 1+rng.IntN(6))
		names := rng.Perm(12)
		for i := range groups {
			groups[i] = Group{Name: fmt.Sprint("group-", i), Selector: anySelector(t, rng)}
			if rng.IntN(4) == 0 {
				groups[i] = Group{Name: groups[i].Name, Nodes: []string{name(names[2*i]), name(names[2*i+1])}}
			}
		}
		g := (&plan{policy: &Policy{Groups: groups}}).grouper()
		for i := range 12 {
			n := &Node{Name: name(i), Labels: map[string]string{}}
			for _, key := range []string{"pool", "arch"} {
				if v := rng.IntN(4); v > 0 {
					n.Labels[key] = string(rune('a' + v - 1))
				}
			}
			want := slices.IndexFunc(groups, func(g Group) bool {
				return slices.Contains(g.Nodes, n.Name) || g.Selector != nil && g.Selector.Matches(labels.Set(n.Labels))
			})
			if got := g.group(n); int(got) != want {
				t.Fatalf("round %d: node %v is in group %d, want %d of %v", round, n, got, want, groups)
			}
			found[want >= 0]++
		}
	}
	if found[true] < 1000 || found[false] < 300 {
		t.Errorf("%d nodes had a group and %d had none: that shows nothing", found[true], found[false])
	}
}

func name(i int) string { return fmt.Sprintf("node-%02d", i) }

func anySelector(t *testing.T, rng *rand.Rand) labels.Selector {
	t.Helper()
	var wants []metav1.LabelSelectorRequirement
	for _, key := range []string{"pool", "arch"} {
		if rng.IntN(3) == 0 {
			continue
		}
		want := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists}
		if values := []string{"a", "b", "c"}[:1+rng.IntN(2)]; rng.IntN(4) > 0 {
			want.Operator, want.Values = []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn}[rng.IntN(2)], values
		}
		wants = append(wants, want)
	}
	if len(wants) == 0 && rng.IntN(2) == 0 {
		return labels.Nothing()
	}
	s, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: wants})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
