// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/belayproject/belay/internal/raceshare"
)

// patched applies a change as the server would, and refuses a stale one.
func patched(t *testing.T, node *corev1.Node, c nodeChange) *corev1.Node {
	t.Helper()
	patch, err := c.patch(node)
	if err != nil {
		t.Fatal(err)
	}
	original, err := json.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := strategicpatch.StrategicMergePatch(original, patch, corev1.Node{})
	if err != nil {
		t.Fatal(err)
	}
	out := &corev1.Node{}
	if err := json.Unmarshal(merged, out); err != nil {
		t.Fatal(err)
	}
	out.ResourceVersion += "1"
	return out
}

func markedNode(unschedulable bool) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "1"}, Spec: corev1.NodeSpec{Unschedulable: unschedulable}}
}

// Three actors enter and leave in random order, a thousand times: as long as one is in, the node is not schedulable, and when the last
// is out, it is what it was before the first, with nothing of theirs left (R-DR-09, R-DR-17).
func TestLastHolderOutGivesBackWhatTheFirstFound(t *testing.T) {
	t.Parallel()
	for seed := range raceshare.Of(t, uint64(1000)) {
		r := rand.New(rand.NewPCG(seed, 1))
		before := r.IntN(2) == 0
		node := markedNode(before)
		in := map[string]bool{}
		for step := 0; step < 40 || len(in) > 0; step++ {
			name := fmt.Sprintf("actor-%d", r.IntN(3))
			m, err := markOf(node)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case !in[name] && step < 40:
				at := time.Unix(int64(step), 0)
				node = patched(t, node, cordonWith(node, m, holder{Holder: name, Mode: Drain, Since: at}, at))
				in[name] = true
			case in[name]:
				node = patched(t, node, releaseOf(node, m, name, nil))
				delete(in, name)
			}
			if len(in) > 0 && !node.Spec.Unschedulable {
				t.Fatalf("seed %d step %d: schedulable while %v hold it", seed, step, in)
			}
		}
		if node.Spec.Unschedulable != before || len(node.Annotations) != 0 {
			t.Fatalf("seed %d: got unschedulable %v and annotations %v, want %v and none", seed, node.Spec.Unschedulable, node.Annotations, before)
		}
	}
}

// R-DR-01: the cordon and the holder's mark are one write, which tests what it was decided on.
func TestCordonAndMarkAreOneGuardedWrite(t *testing.T) {
	node := markedNode(false)
	patch, err := cordonWith(node, mark{}, holder{Holder: "h", Mode: Drain}, time.Unix(1, 0)).patch(node)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"unschedulable":true`, `"resourceVersion":"1"`, `"uid":"u"`, MarkAnnotation} {
		if !strings.Contains(string(patch), want) {
			t.Errorf("the patch %s lacks %s", patch, want)
		}
	}
}

func TestUncordonByOthersIsKeptByTheRelease(t *testing.T) {
	node := markedNode(true)
	node = patched(t, node, cordonWith(node, mark{}, holder{Holder: "h"}, time.Unix(1, 0)))
	node.Spec.Unschedulable = false
	m, _ := markOf(node)
	if node = patched(t, node, releaseOf(node, m, "h", nil)); node.Spec.Unschedulable || len(node.Annotations) > 0 {
		t.Errorf("got unschedulable %v, annotations %v; somebody had uncordoned the node", node.Spec.Unschedulable, node.Annotations)
	}
}

func TestAWatchingHolderDoesNotHoldTheCordon(t *testing.T) {
	node := markedNode(false)
	node = patched(t, node, cordonWith(node, mark{}, holder{Holder: "a"}, time.Unix(1, 0)))
	m, _ := markOf(node)
	watching := *m.of("a")
	watching.Released = time.Unix(9, 0)
	node = patched(t, node, releaseOf(node, m, "a", &watching))
	if m, _ = markOf(node); node.Spec.Unschedulable || m.of("a") == nil {
		t.Fatalf("got unschedulable %v and mark %+v, want a schedulable node and a watching holder", node.Spec.Unschedulable, m)
	}
	node.Spec.Unschedulable = true // somebody cordons it for himself
	node = patched(t, node, cordonWith(node, m, holder{Holder: "b"}, time.Unix(1, 0)))
	m, _ = markOf(node)
	if node = patched(t, node, releaseOf(node, m, "b", nil)); !node.Spec.Unschedulable {
		t.Error("the cordon that was there before b came is gone")
	}
}

func TestOutOfServiceTaintGoesWithTheReleaseAndNoOther(t *testing.T) {
	node := markedNode(false)
	node.Spec.Taints = []corev1.Taint{{Key: "theirs", Effect: corev1.TaintEffectNoSchedule}}
	node = patched(t, node, cordonWith(node, mark{}, holder{Holder: "h"}, time.Unix(1, 0)))
	m, _ := markOf(node)
	node = patched(t, node, outOfServiceBy(node, m, *m.of("h")))
	m, _ = markOf(node)
	if len(node.Spec.Taints) != 2 || !m.of("h").OutOfService {
		t.Fatalf("got taints %v and mark %+v", node.Spec.Taints, m)
	}
	if got := releaseOf(node, m, "h", nil); len(*got.taints) != 1 || (*got.taints)[0].Key != "theirs" {
		t.Errorf("got taints %v after the release, want theirs alone", *got.taints)
	}
}

func TestADamagedMarkIsAnErrorThatNamesIt(t *testing.T) {
	node := markedNode(true)
	node.Annotations = map[string]string{MarkAnnotation: "{"}
	_, err := markOf(node)
	if err == nil || !strings.Contains(err.Error(), MarkAnnotation) || !strings.Contains(err.Error(), `"n"`) {
		t.Errorf("got %v, want an error with the annotation and the node", err)
	}
}
