// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/belayproject/belay/configsync/v1alpha1"
)

// resources are those of which the demo creates objects, in the order in which these are removed.
func resources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{v1alpha1.NodeConfigsResource, nodes, configMaps, namespaces, crds}
}

// Remove deletes everything that carries the run's label, and waits until it is gone. A resource definition stays where somebody else
// has come to use it. The error names what could not be removed.
func (c *Cluster) Remove(ctx context.Context) error {
	if !c.started {
		return nil
	}
	var errs []error
	for _, r := range resources() {
		all, err := c.find(ctx, r)
		if err != nil {
			errs = append(errs, err)
		}
		for _, m := range all {
			errs = append(errs, c.remove(ctx, m))
		}
	}
	return errors.Join(errs...)
}

// find lists the run's objects of a resource. A resource that isn't served has none.
func (c *Cluster) find(ctx context.Context, r schema.GroupVersionResource) ([]made, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := c.client.Resource(r).List(ctx, metav1.ListOptions{LabelSelector: RunLabel + "=" + c.run})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for what is left of %s with the label %s=%s: %w", r.Resource, RunLabel, c.run, err)
	}
	var all []made
	for _, o := range got.Items {
		all = append(all, made{r, o.GetNamespace(), o.GetName(), o.GetUID()})
	}
	return all, nil
}

// remove deletes one object and waits until it is gone.
func (c *Cluster) remove(ctx context.Context, m made) error {
	if used, err := c.usedByOthers(ctx, m); err != nil || used {
		return err
	}
	if err := c.delete(ctx, m); err != nil {
		return err
	}
	return c.wait(ctx, m.String()+" is gone", func(ctx context.Context) (bool, error) { return c.gone(ctx, m) })
}

// usedByOthers reports whether m is a resource definition under which there are objects.
func (c *Cluster) usedByOthers(ctx context.Context, m made) (bool, error) {
	if m.resource != crds {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	all, err := c.client.Resource(v1alpha1.NodeConfigsResource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false, fmt.Errorf("looking for other NodeConfigs: %w", err)
	}
	return len(all.Items) > 0, nil
}

// delete deletes the object under its UID. That it is gone, or another by now, is no error.
func (c *Cluster) delete(ctx context.Context, m made) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := c.client.Resource(m.resource).Namespace(m.namespace).Delete(ctx, m.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &m.uid},
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting %s: %w", m, err)
}

func (c *Cluster) gone(ctx context.Context, m made) (bool, error) {
	got, err := c.client.Resource(m.resource).Namespace(m.namespace).Get(ctx, m.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for %s: %w", m, err)
	}
	return got.GetUID() != m.uid, nil
}
