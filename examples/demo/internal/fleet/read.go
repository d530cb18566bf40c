// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/demo/internal/story"
)

// readTimeout is short: the demo stops the API server on purpose, and the screen must go on.
const readTimeout = 2 * time.Second

// errNoReport means that a node has not written its status yet.
var errNoReport = errors.New("the node has not reported yet")

// A Report is what was read about one node.
type Report struct {
	story.Report
	Err error
}

// Read returns what the nodes have reported to the API server, by name. The error says that it didn't answer.
func (c *Cluster) Read(ctx context.Context) (map[string]Report, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	configs, err := list[v1alpha1.NodeConfig](ctx, c, v1alpha1.NodeConfigsResource)
	if err != nil {
		return nil, err
	}
	machines, err := list[corev1.Node](ctx, c, nodes)
	if err != nil {
		return nil, err
	}
	conditions := map[string]corev1.NodeCondition{}
	for _, n := range machines {
		for _, cond := range n.Status.Conditions {
			if cond.Type == v1alpha1.ConditionConfigOK {
				conditions[n.Name] = cond
			}
		}
	}
	reports := map[string]Report{}
	for _, nc := range configs {
		reports[nc.Name] = report(nc.Status, conditions[nc.Name])
	}
	return reports, nil
}

// list returns the run's objects of a resource.
func list[T any](ctx context.Context, c *Cluster, r schema.GroupVersionResource) ([]T, error) {
	got, err := c.client.Resource(r).List(ctx, metav1.ListOptions{LabelSelector: RunLabel + "=" + c.run})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", r.Resource, err)
	}
	var all []T
	err = got.EachListItem(func(o runtime.Object) error {
		var t T
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("got a %T", o)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &t); err != nil {
			return err
		}
		all = append(all, t)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.Resource, err)
	}
	return all, nil
}

// report puts together what a node wrote into its NodeConfig and its ConfigOK condition.
func report(s v1alpha1.NodeConfigStatus, cond corev1.NodeCondition) Report {
	if s.Active == nil || cond.Type == "" {
		return Report{Err: errNoReport}
	}
	r := story.Report{
		Active: ref(s.Active), Good: ref(s.LastKnownGood), Rejected: map[string]string{},
		Status: string(cond.Status), Reason: cond.Reason, Message: cond.Message,
	}
	for _, bad := range s.Rejected {
		r.Rejected[bad.UID] = bad.Reason
	}
	if t := s.Trial; t != nil {
		r.Trial = &story.Trial{
			Healthy: time.Duration(t.HealthySeconds) * time.Second, Needed: time.Duration(t.NeededSeconds) * time.Second,
			Crashes: int(t.CountedStarts), Allowed: int(t.AllowedStarts),
		}
	}
	return Report{Report: r}
}

// ref names a config; a local one has no UID.
func ref(c *v1alpha1.Config) story.Ref {
	if c == nil || c.ConfigMapRef == nil {
		return story.Ref{Name: "local"}
	}
	return story.Ref{Name: c.ConfigMapRef.Name, UID: c.ConfigMapRef.UID, Digest: c.ConfigMapRef.Digest}
}

// IsAway reports whether an error of [Cluster.Read] says that no API server has answered.
func IsAway(err error) bool {
	var answer apierrors.APIStatus
	return err != nil && !errors.As(err, &answer)
}
