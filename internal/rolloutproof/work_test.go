// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// noPods is the name of a quota that lets no pod be made.
const noPods = "no-pods"

// R-RO-10: on a real control plane the work of the first node does not come back, as a quota keeps its pods from being made anew. The rollout freezes with
// the name of the Deployment, and begins no other node. When the work is back, and somebody has accepted it, the rollout goes on to its end.
func TestWorkThatIsGoneFreezes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, rolloutstage.Options{Nodes: 6, Cap: 1, PodsPerNode: 2, Verify: 100 * time.Millisecond})
	f.quota()
	must(t, f.Begin(t.Context(), "v2", func(s *v1alpha1.RolloutSpec) {
		// So long the work of each later node may take to come back, on a busy machine too: a rollout that freezes once more would wait for ever.
		s.Deadlines = &v1alpha1.Deadlines{Verify: &metav1.Duration{Duration: 30 * time.Second}}
		s.RetryAfter = &metav1.Duration{Duration: time.Second}
	}))
	p := f.spawn(rolloutstage.Task{Health: true})
	f.frozenByWork(p)
	f.lift()
	f.asks(p, v1alpha1.Verb{Do: v1alpha1.Do(rollout.Accept)})
	f.brought(p, "v2")
}

// frozenByWork waits for the freeze, and sees that no node is begun after it.
func (f *fleet) frozenByWork(p *rolloutstage.Process) {
	f.t.Helper()
	var said string
	rolloutstage.Eventually(f.t, "work that does not come back freezes the rollout", patience, func(ctx context.Context) error {
		must(f.t, p.Alive())
		r, err := f.Rollout(ctx)
		if err != nil {
			return err
		}
		if said = r.Status.Message; r.Status.Phase != v1alpha1.RolloutPhase(rollout.Frozen) {
			return fmt.Errorf("it is %s: %s", r.Status.Phase, said)
		}
		return nil
	})
	if !strings.Contains(said, `Deployment "default/web-0"`) {
		f.t.Errorf("R-RO-10: the rollout says %q, want the name of the work that is missing", said)
	}
	before, err := f.Ledger(f.t.Context())
	must(f.t, err)
	<-time.After(3 * time.Second)
	after, err := f.Ledger(f.t.Context())
	must(f.t, err)
	if before.Epoch != 1 || after.Epoch != before.Epoch {
		f.t.Errorf("R-RO-10: %d nodes were begun when the rollout froze, and %d after that, want the first alone", before.Epoch, after.Epoch)
	}
	f.t.Log(said)
}

// quota keeps pods from being made.
func (f *fleet) quota() {
	f.t.Helper()
	quotas := f.Core.CoreV1().ResourceQuotas(metav1.NamespaceDefault)
	_, err := quotas.Create(f.t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: noPods},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	must(f.t, err)
	rolloutstage.Eventually(f.t, "the quota is in force", patience, func(ctx context.Context) error {
		q, err := quotas.Get(ctx, noPods, metav1.GetOptions{})
		if err == nil && len(q.Status.Hard) == 0 {
			err = fmt.Errorf("its status is %+v", q.Status)
		}
		return err
	})
}

// lift removes the quota, and waits until the work is back. The ReplicaSet waits ever longer between its attempts: a change of its Deployment, which is
// handed down to it, wakes it.
func (f *fleet) lift() {
	f.t.Helper()
	must(f.t, f.Core.CoreV1().ResourceQuotas(metav1.NamespaceDefault).Delete(f.t.Context(), noPods, metav1.DeleteOptions{}))
	deployments, n := f.Core.AppsV1().Deployments(metav1.NamespaceDefault), 0
	rolloutstage.Eventually(f.t, "the work is back", patience, func(ctx context.Context) error {
		n++
		poke := fmt.Appendf(nil, `{"metadata":{"annotations":{"test.belay.dev/poke":"%d"}}}`, n)
		d, err := deployments.Patch(ctx, "web-0", types.MergePatchType, poke, metav1.PatchOptions{})
		if err == nil && d.Status.ReadyReplicas != *d.Spec.Replicas {
			err = fmt.Errorf("%d of %d pods are ready", d.Status.ReadyReplicas, *d.Spec.Replicas)
		}
		return err
	})
}
