// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/testenv"
)

// A scenario is one maintenance of three nodes, one of which an administrator has cordoned before. On them are nine pods under a budget
// that lets three go at a time, a pod without one on each, and the twin: its budget never lets it go. When the first process is killed, or
// nothing but the twin is left, the twin is made anew elsewhere under its name, and its budget opened: from then on the server would
// let it go.
type scenario struct {
	*cluster
	dir     string
	user    string
	task    childTask
	prior   map[string]bool      // by node, whether it was unschedulable
	planned map[types.UID]string // the pods on the nodes, by name
	spare   string
	moved   types.UID // the twin's UID after that
	kills   int
	repeats int // evictions that were accepted again
	refunds int
}

// newScenario builds one; number makes its names its own.
func newScenario(ctx context.Context, place *cluster, dir string, number int) (*scenario, error) {
	c := *place
	c.name = fmt.Sprintf("%s-%d", place.namespace, number)
	s := &scenario{cluster: &c, dir: filepath.Join(dir, c.name), user: c.name + "-drainer", prior: map[string]bool{}, planned: map[types.UID]string{}}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	config, err := c.env.NewUser(s.user, drainers)
	if err != nil {
		return nil, err
	}
	s.task = childTask{Kubeconfig: filepath.Join(s.dir, "kubeconfig"), Holder: s.user, State: filepath.Join(s.dir, "state"), Keep: number%2 == 0}
	if err := testenv.WriteKubeconfig(s.task.Kubeconfig, config); err != nil {
		return nil, err
	}
	return s, s.build(ctx)
}

func (s *scenario) build(ctx context.Context) error {
	for _, name := range []string{"a", "b", "c"} {
		var changes []func(*corev1.Node)
		if name == "b" {
			changes = append(changes, cordoned)
		}
		node, err := s.node(ctx, name, workRole, changes...)
		if err != nil {
			return err
		}
		s.task.Nodes, s.prior[node.Name] = append(s.task.Nodes, node.Name), name == "b"
	}
	spare, err := s.node(ctx, "spare", spareRole)
	if err != nil {
		return err
	}
	s.spare = spare.Name
	a, b, c := s.task.Nodes[0], s.task.Nodes[1], s.task.Nodes[2]
	if _, err := s.pod(ctx, "twin", "twin", a); err != nil {
		return err
	}
	for i, node := range s.task.Nodes {
		if _, err := s.pod(ctx, fmt.Sprintf("plain-%d", i), "plain", node); err != nil {
			return err
		}
	}
	err = errors.Join(s.budget(ctx, "twin", "twin", 1), s.app(ctx, "web", 6, a, b, c, a, b, c, a, b, c), s.healthy(ctx, "twin", 1))
	if err != nil {
		return err
	}
	for _, node := range s.task.Nodes {
		pods, err := s.podsOn(ctx, node)
		if err != nil {
			return err
		}
		for _, p := range pods {
			s.planned[p.UID] = p.Name
		}
	}
	if len(s.planned) != 13 {
		return fmt.Errorf("there are %d pods on the nodes, want 13", len(s.planned))
	}
	return nil
}

// process runs one child until it has finished or is killed.
func (s *scenario) process(ctx context.Context, stop int, sent bool, killAfter time.Duration) (verdict, error) {
	task := s.task
	task.Stop, task.Sent = stop, sent
	p, err := spawn(s.env, s.dir, task)
	if err != nil {
		return verdict{}, err
	}
	v, err := p.follow(ctx, killAfter, func(e childEvent) error {
		if e.Kind == childReport && e.Remaining == 1 {
			return s.moveTwin(ctx)
		}
		return nil
	})
	if err != nil || !v.killed {
		return v, err
	}
	s.kills++
	return v, errors.Join(s.consistent(ctx), s.moveTwin(ctx), s.refund(ctx))
}

// refund gives back what evictions have cost that the server gave up halfway because their client was gone: it has taken them from the
// budget and not deleted the pod. The disruption controller would do that after two minutes, for which a test cannot wait each time.
func (s *scenario) refund(ctx context.Context) error {
	if _, err := auditOf(ctx, s.env.AuditLog(), s.user); err != nil { // nothing is under way any more
		return err
	}
	b, err := s.api.PolicyV1().PodDisruptionBudgets(s.namespace).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	lost := map[string]any{}
	for name := range b.Status.DisruptedPods {
		pod, err := s.api.CoreV1().Pods(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil && pod.DeletionTimestamp == nil {
			lost[name] = nil
		}
	}
	if len(lost) == 0 {
		return nil
	}
	s.refunds += len(lost)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"disruptedPods": lost}})
	if err != nil {
		return err
	}
	_, err = s.api.PolicyV1().PodDisruptionBudgets(s.namespace).Patch(ctx, "web", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// finish runs a child that is not killed.
func (s *scenario) finish(ctx context.Context) error {
	v, err := s.process(ctx, 0, false, 0)
	if err == nil && !v.finished {
		err = errors.New("the last child has not released the nodes")
	}
	return err
}

// moveTwin makes the twin anew on the spare node, once.
func (s *scenario) moveTwin(ctx context.Context) error {
	if s.moved != "" {
		return nil
	}
	err := s.api.CoreV1().Pods(s.namespace).Delete(ctx, "twin", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	twin, err := s.pod(ctx, "twin", "twin", s.spare)
	if err != nil {
		return err
	}
	s.moved = twin.UID
	open := []byte(`{"spec":{"minAvailable":0}}`)
	if _, err := s.api.PolicyV1().PodDisruptionBudgets(s.namespace).Patch(ctx, "twin", types.MergePatchType, open, metav1.PatchOptions{}); err != nil {
		return err
	}
	return s.healthy(ctx, "twin", 1)
}

// consistent checks what holds at any instant: a node with our mark is closed, one without is as it was.
func (s *scenario) consistent(ctx context.Context) error {
	for _, name := range s.task.Nodes {
		node, err := s.api.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if want := marked(node) || s.prior[name]; node.Spec.Unschedulable != want {
			return fmt.Errorf("after a kill, node %q has mark %q and unschedulable is %t, want %t", name, node.Annotations, node.Spec.Unschedulable, want)
		}
	}
	return nil
}

// clean removes what the scenario leaves, so that the next one's cache has no more to hold.
func (s *scenario) clean(ctx context.Context) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}
	background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	err := errors.Join(
		s.api.AppsV1().ReplicaSets(s.namespace).DeleteCollection(ctx, background, metav1.ListOptions{}),
		s.api.PolicyV1().PodDisruptionBudgets(s.namespace).DeleteCollection(ctx, now, metav1.ListOptions{}))
	err = errors.Join(err, s.api.CoreV1().Nodes().DeleteCollection(ctx, now, metav1.ListOptions{LabelSelector: placeLabel + "=" + s.name}))
	if err != nil {
		return err
	}
	return until(ctx, func() error {
		pods := s.api.CoreV1().Pods(s.namespace)
		if err := pods.DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
			return err
		}
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(list.Items))
		}
		return err
	})
}
