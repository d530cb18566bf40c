// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain/fit"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
)

// clusters is how many small clusters the estimate and the scheduler judge.
const clusters = 120

// The estimate says of small random clusters what kube-scheduler says: the same pods find no Node, for the same reasons
// of the same number of Nodes. Each pod that the scheduler places is on a Node that the estimate allows too.
func TestEstimateAgreesWithTheScheduler(t *testing.T) {
	env := testenv.Start(t, testenv.Options{With: []testenv.Component{testenv.Scheduler}})
	config := rest.CopyConfig(env.Config())
	config.QPS, config.Burst = 500, 500
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := &randomClusters{Rand: rand.New(rand.NewPCG(seed, 1)), namespace: env.Namespace(t), cluster: fit.Cluster{
		Claims: map[types.NamespacedName]*corev1.PersistentVolumeClaim{}, Volumes: map[string]*corev1.PersistentVolume{},
		Classes: map[string]*storagev1.StorageClass{},
	}}
	r.cluster.NamespaceLabels = map[string]map[string]string{r.namespace: {corev1.LabelMetadataName: r.namespace}}
	for i := range clusters {
		r.makeCluster(i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r.create(ctx, t, admin)
	agreed, misfits := 0, 0
	for i, pod := range r.incoming {
		v := fit.PlaceReplacements(r.cluster, []*corev1.Pod{pod})[0]
		node, why := decided(ctx, t, admin, pod)
		if !v.Fits {
			misfits++
		}
		switch {
		case v.Unchecked != "":
			t.Errorf("cluster %d: not checked: %s", i, v.Unchecked)
		case v.Fits != (node != ""), !v.Fits && !sameReasons(v.Why, why):
			t.Errorf("cluster %d: the estimate says %+v,\nthe scheduler says node %q, %s\nspec %+v", i, v, node, why, pod.Spec)
		case v.Fits && !allows(r.cluster, pod, node):
			t.Errorf("cluster %d: the estimate keeps pod from node %q, on which the scheduler has put it: %+v", i, node,
				pod.Spec)
		default:
			agreed++
		}
	}
	t.Logf("the estimate agrees with kube-scheduler on %d of %d clusters; in %d no Node takes the pod", agreed,
		clusters, misfits)
	if misfits < clusters/5 || misfits > clusters*4/5 {
		t.Errorf("%d of %d pods fit nowhere, so that the comparison says little", misfits, clusters)
	}
}

// allows reports whether the estimate takes the pod where no other Node is.
func allows(c fit.Cluster, pod *corev1.Pod, node string) bool {
	for _, n := range c.Nodes {
		if n.Name != node {
			c.Draining = append(c.Draining, n.Name)
		}
	}
	return fit.PlaceReplacements(c, []*corev1.Pod{pod})[0].Fits
}

// sameReasons compares what both say of the Nodes; which taint it is the newer schedulers do not say.
func sameReasons(ours, theirs string) bool {
	theirs, _, _ = strings.Cut(theirs, " preemption:")
	return slices.Equal(reasonCounts(ours), reasonCounts(strings.TrimSuffix(strings.TrimSpace(theirs), ".")))
}

func reasonCounts(message string) []string {
	_, list, _ := strings.Cut(message, ": ")
	counts := map[string]int{}
	for _, part := range strings.Split(list, ", ") {
		var count int
		var reason string
		if _, err := fmt.Sscanf(part, "%d", &count); err == nil {
			_, reason, _ = strings.Cut(part, " ")
		}
		if strings.Contains(reason, "taint") {
			reason = "taint"
		}
		counts[reason] += count
	}
	var list2 []string
	for reason, count := range counts {
		list2 = append(list2, fmt.Sprintf("%d %s", count, reason))
	}
	slices.Sort(list2)
	return list2
}

// create makes the clusters, and then, when the scheduler has seen them, the pods that it is to place.
func (r *randomClusters) create(ctx context.Context, t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	o := metav1.CreateOptions{}
	for _, class := range r.cluster.Classes {
		must(t, errOf(admin.StorageV1().StorageClasses().Create(ctx, class, o)))
	}
	for _, claim := range r.claims {
		made, err := admin.CoreV1().PersistentVolumeClaims(r.namespace).Create(ctx, claim, o)
		must(t, err)
		if pv := r.cluster.Volumes[claim.Spec.VolumeName]; pv != nil {
			pv.Spec.ClaimRef.UID = made.UID
			must(t, errOf(admin.CoreV1().PersistentVolumes().Create(ctx, pv, o)))
		}
	}
	for _, node := range r.cluster.Nodes {
		made, err := admin.CoreV1().Nodes().Create(ctx, node, o)
		must(t, err)
		made.Spec.Taints = node.Spec.Taints // without the taint of a new Node
		must(t, errOf(admin.CoreV1().Nodes().Update(ctx, made, metav1.UpdateOptions{})))
	}
	pods := admin.CoreV1().Pods(r.namespace)
	for _, pod := range r.cluster.Pods {
		must(t, errOf(pods.Create(ctx, pod, o)))
	}
	nowhere := r.makePod(-1, "nowhere")
	nowhere.Spec.NodeSelector = map[string]string{"cluster": "nowhere"}
	must(t, errOf(pods.Create(ctx, nowhere, o)))
	waitFor(ctx, t, func() string {
		pod, err := pods.Get(ctx, nowhere.Name, metav1.GetOptions{})
		must(t, err)
		all := fmt.Sprintf("0/%d nodes", len(r.cluster.Nodes))
		for _, c := range pod.Status.Conditions {
			if strings.HasPrefix(c.Message, all) {
				return ""
			}
		}
		return "the scheduler has not seen all nodes: " + fmt.Sprint(pod.Status.Conditions)
	})
	for _, pod := range r.incoming {
		must(t, errOf(pods.Create(ctx, pod, o)))
	}
}

func errOf(_ any, err error) error { return err }

// decided is where the scheduler has put a pod, or why it has not.
func decided(ctx context.Context, t *testing.T, admin kubernetes.Interface, pod *corev1.Pod) (node, why string) {
	t.Helper()
	waitFor(ctx, t, func() string {
		got, err := admin.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		must(t, err)
		if node = got.Spec.NodeName; node != "" {
			return ""
		}
		for _, v := range got.Spec.Volumes { // a volume is provisioned where the pod is to go
			if v.PersistentVolumeClaim == nil {
				continue
			}
			claim, err := admin.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx,
				v.PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
			must(t, err)
			if node = claim.Annotations["volume.kubernetes.io/selected-node"]; node != "" {
				return ""
			}
		}
		for _, c := range got.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				why = c.Message
				return ""
			}
		}
		return "the scheduler has not decided about pod " + pod.Name
	})
	return node, why
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func waitFor(ctx context.Context, t *testing.T, done func() string) {
	t.Helper()
	pace := testproc.NewPace()
	for {
		missing := done()
		if missing == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(missing)
		case <-pace.Next():
		}
	}
}
