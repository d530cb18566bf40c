// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/backoff"
)

// The server tries an eviction that conflicts again by itself.
const (
	evictTries = 20
	evictPause = 500 * time.Millisecond
)

// Evict implements [drain.Client]. An empty UID is no precondition.
func (c *Cluster) Evict(ctx context.Context, pod drain.PodRef, grace *int64) error {
	return c.evictCall(ctx, Call{Verb: Evict}, eviction{key: pod.Key(), uid: pod.UID, grace: grace})
}

// EvictDryRun asks what [Cluster.Evict] would answer.
func (c *Cluster) EvictDryRun(ctx context.Context, pod drain.PodRef) error {
	return c.evictCall(ctx, Call{Verb: Evict, DryRun: true}, eviction{key: pod.Key(), uid: pod.UID, dryRun: true})
}

func (c *Cluster) evictCall(ctx context.Context, call Call, e eviction) error {
	call.Object, call.UID, call.GracePeriodSeconds = e.key.String(), e.uid, e.grace
	return c.call(ctx, call, func() (wrote bool, err error) {
		for try := 1; ; try++ {
			c.lock()
			again, err := c.evict(e)
			c.unlock()
			if !again || try == evictTries {
				return err == nil && !e.dryRun, err
			}
			if !backoff.Sleep(ctx, evictPause) {
				return false, ctx.Err()
			}
		}
	})
}

// Delete implements [drain.Client]. An empty UID is no precondition.
func (c *Cluster) Delete(ctx context.Context, pod drain.PodRef, grace *int64) error {
	return c.call(ctx, Call{Verb: Delete, Object: pod.String(), UID: pod.UID, GracePeriodSeconds: grace}, func() (bool, error) {
		c.lock()
		defer c.unlock()
		err := c.deletePod(eviction{key: pod.Key(), uid: pod.UID, grace: grace})
		return err == nil, err
	})
}

// PatchNode implements [drain.Client].
func (c *Cluster) PatchNode(ctx context.Context, name string, patch []byte, status bool) (node *corev1.Node, err error) {
	call := Call{Verb: PatchNode, Object: name, Patch: string(patch), Status: status}
	err = c.call(ctx, call, func() (bool, error) {
		c.lock()
		defer c.unlock()
		var failed error
		node, failed = c.patchNode(name, patch, status)
		return failed == nil, failed
	})
	if err != nil {
		return nil, err
	}
	return node, nil
}

func (c *Cluster) patchNode(name string, patch []byte, status bool) (*corev1.Node, error) {
	old := c.nodes.get(name)
	if old == nil {
		return nil, apierrors.NewNotFound(nodeResource(), name)
	}
	node := &corev1.Node{}
	if err := mergePatch(old, patch, node); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if node.ResourceVersion != old.ResourceVersion {
		return nil, optimisticLock(nodeResource(), name)
	}
	if node.UID != old.UID {
		return nil, otherNodeUID(name, node.UID)
	}
	if status {
		node.Spec = old.Spec
	} else {
		node.Status = old.Status
	}
	if equality.Semantic.DeepEqual(old, node) {
		return old, nil
	}
	trackOwners(old, node, drainerManager)
	return c.putNode(node), nil
}

// GetNode implements [drain.Client].
func (c *Cluster) GetNode(ctx context.Context, name string) (node *corev1.Node, err error) {
	err = c.call(ctx, Call{Verb: GetNode, Object: name}, func() (bool, error) {
		if node = c.LiveNode(name); node == nil {
			return false, apierrors.NewNotFound(corev1.Resource("nodes"), name)
		}
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	return node, nil
}

// ListPods implements [drain.Client].
func (c *Cluster) ListPods(ctx context.Context, node string) (pods []*corev1.Pod, err error) {
	err = c.call(ctx, Call{Verb: ListPods, Object: node}, func() (bool, error) {
		c.lock()
		defer c.unlock()
		pods = sorted(c.pods.live, func(p *corev1.Pod) bool { return p.Spec.NodeName == node })
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	return pods, nil
}

func otherNodeUID(name string, want types.UID) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, name,
		field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), want, "field is immutable")})
}

// ErrCrash is what a client gets whose process has died: the call under way and all later ones fail with it, until [Script.Revive].
var ErrCrash = errors.New("draintest: the process has crashed")
