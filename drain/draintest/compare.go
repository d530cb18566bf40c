// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
)

// CompareServers does the same random steps to two fixtures and compares every answer, and what pods and budgets are once each step has
// settled. The seed decides the steps; it stands in the failure text. The first fixture is the one that settles at once: give it that of
// [NewFixture].
func CompareServers(t *testing.T, seed uint64, steps int, memory, real Fixture) {
	t.Helper()
	c := &comparison{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), seed: seed,
		sides: [2]server{
			{Fixture: memory, t: t, rule: "comparison", ns: memory.Namespace(t)},
			{Fixture: real, t: t, rule: "comparison", ns: real.Namespace(t)},
		},
	}
	for range steps {
		c.step()
		c.settle()
		if t.Failed() {
			t.Fatalf("seed %d, last of these steps:\n%s", seed, strings.Join(c.story, "\n"))
		}
	}
}

// A comparison keeps two fixtures in step. Objects have the same names in both.
type comparison struct {
	t      *testing.T
	random *rand.Rand
	seed   uint64
	sides  [2]server
	story  []string

	made    int
	pods    []string
	budgets []string
	owners  [2]map[string]types.UID
}

const apps = 3

func (c *comparison) app() string { return fmt.Sprintf("app%d", c.random.IntN(apps)) }

func (c *comparison) tell(format string, args ...any) {
	c.story = append(c.story, fmt.Sprintf(format, args...))
}

func (c *comparison) both(do func(side int, s server)) {
	for i, s := range c.sides {
		do(i, s)
	}
}

// step picks one thing to do. What needs an object of which there is none creates one.
func (c *comparison) step() {
	switch n := c.random.IntN(20); {
	case n < 5 || len(c.pods) == 0:
		c.addPod()
	case n < 7 && len(c.budgets) < apps || len(c.budgets) == 0:
		c.addBudget()
	case n < 13:
		c.evict()
	case n < 16:
		c.flip()
	case n < 18:
		c.finish()
	default:
		c.respec()
	}
}

func (c *comparison) addPod() {
	c.made++
	name, app := fmt.Sprintf("p%02d", c.made), c.app()
	node := "fixture-node"
	changes := []func(*corev1.Pod){Labelled(app)}
	owned := c.random.IntN(4) > 0
	switch kind := c.random.IntN(8); kind {
	case 0:
		changes = append(changes, InPhase(corev1.PodPending))
	case 1:
		changes = append(changes, InPhase(corev1.PodSucceeded))
	case 2, 3:
		changes = append(changes, Unready)
	case 4:
		node = ""
	}
	c.tell("create pod %s of %s, owned: %v, on %q", name, app, owned, node)
	c.pods = append(c.pods, name)
	replicas := int32(1 + c.random.IntN(6))
	c.both(func(i int, s server) {
		all := changes
		if owned {
			all = append(slices.Clone(changes), OwnedBy(ReplicaSet, app, c.owner(i, app, replicas)))
		}
		s.Pod(c.t, NewPod(s.ns, name, node, all...))
	})
}

func (c *comparison) owner(side int, app string, replicas int32) types.UID {
	if c.owners[side] == nil {
		c.owners[side] = map[string]types.UID{}
	}
	uid, ok := c.owners[side][app]
	if !ok {
		uid = c.sides[side].Owner(c.t, ReplicaSet, c.sides[side].ns, app, replicas)
		c.owners[side][app] = uid
	}
	return uid
}

func (c *comparison) addBudget() {
	app := fmt.Sprintf("app%d", len(c.budgets))
	n, percent, most, always := c.random.IntN(4), c.random.IntN(101), c.random.IntN(2) == 0, c.random.IntN(3) == 0
	bound := fmt.Sprint(n)
	if c.random.IntN(2) == 0 {
		bound = fmt.Sprintf("%d%%", percent)
	}
	c.tell("create budget %s, maxUnavailable: %v, %s, AlwaysAllow: %v", app, most, bound, always)
	c.budgets = append(c.budgets, app)
	var changes []func(*policyv1.PodDisruptionBudget)
	if always {
		changes = append(changes, AlwaysAllow)
	}
	c.both(func(_ int, s server) {
		b := MinAvailable(s.ns, app, bound, map[string]string{"app": app}, changes...)
		if most {
			b = MaxUnavailable(s.ns, app, bound, map[string]string{"app": app}, changes...)
		}
		s.Budget(c.t, b)
	})
}

// evict asks for an eviction, sometimes of another UID, sometimes as a dry run, and compares the answers.
func (c *comparison) evict() {
	name := c.pods[c.random.IntN(len(c.pods))]
	stale, dry := c.random.IntN(5) == 0, c.random.IntN(5) == 0
	if pod := c.sides[0].GetPod(c.t, c.sides[0].ns, name); stale && pod != nil && passesBudgets(pod) {
		stale = false // costs 10 s
	}
	var answers [2]answer
	c.both(func(i int, s server) {
		ref := drain.PodRef{Namespace: s.ns, Name: name, UID: otherPodUID}
		if pod := s.GetPod(c.t, s.ns, name); pod != nil && !stale {
			ref.UID = pod.UID
		}
		ask := func() error { return s.Client().Evict(c.t.Context(), ref, nil) }
		if dry {
			ask = func() error { return s.DryRun(c.t.Context(), ref) }
		}
		answers[i] = answerOf(ask())
	})
	c.tell("evict %s, another UID: %v, dry run: %v: %d", name, stale, dry, answers[0].code)
	for i := range answers {
		if answers[i].code == 409 {
			answers[i].says = "" // has the UIDs
		}
	}
	answers[1].says = strings.TrimPrefix(answers[1].says, fmt.Sprintf("evicting pod %q: ", c.sides[1].ns+"/"+name))
	if answers[0] != answers[1] {
		c.t.Errorf("seed %d: eviction of %s: memory answers %+v, the server %+v", c.seed, name, answers[0], answers[1])
	}
}

func (c *comparison) flip() {
	name, ready := c.pods[c.random.IntN(len(c.pods))], c.random.IntN(2) == 0
	c.tell("make %s run, ready: %v", name, ready)
	c.both(func(_ int, s server) {
		if pod := s.GetPod(c.t, s.ns, name); pod != nil && !finished(pod) && pod.Spec.NodeName != "" {
			s.SetStatus(c.t, pod, corev1.PodRunning, ready)
		}
	})
}

func (c *comparison) finish() {
	name := c.pods[c.random.IntN(len(c.pods))]
	c.tell("finish %s", name)
	c.both(func(_ int, s server) {
		if pod := s.GetPod(c.t, s.ns, name); pod != nil {
			s.Finish(c.t, pod)
		}
	})
}

func (c *comparison) respec() {
	name, n := c.budgets[c.random.IntN(len(c.budgets))], c.random.IntN(4)
	c.tell("change budget %s to %d", name, n)
	c.both(func(_ int, s server) {
		s.ChangeBudget(c.t, s.ns, name, func(spec *policyv1.PodDisruptionBudgetSpec) {
			if spec.MaxUnavailable != nil {
				spec.MaxUnavailable = ptr.To(intstr.FromInt(n))
			} else {
				spec.MinAvailable = ptr.To(intstr.FromInt(n))
			}
		})
	})
}

// settle waits until the second fixture is what the first is, and compares the pods.
func (c *comparison) settle() {
	memory, real := c.sides[0], c.sides[1]
	for _, name := range c.budgets {
		real.counts(name, countOf(memory.GetBudget(c.t, memory.ns, name)))
	}
	for _, name := range c.pods {
		a, b := describe(memory.GetPod(c.t, memory.ns, name)), describe(real.GetPod(c.t, real.ns, name))
		if a != b {
			c.t.Errorf("seed %d: pod %s: memory has %s, the server %s", c.seed, name, a, b)
		}
	}
}

func describe(pod *corev1.Pod) string {
	if pod == nil {
		return "none"
	}
	grace := ptr.Deref(pod.DeletionGracePeriodSeconds, -1)
	return fmt.Sprintf("phase %s, ready %v, being deleted with grace %d, %d conditions", pod.Status.Phase, isReady(pod), grace, len(pod.Status.Conditions))
}
