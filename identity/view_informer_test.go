// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/internal/informer"
)

// TestInformersThatCannotBeUsed has informers as their owners get them wrong. Run names the option within a second or,
// where the informer stops later, when it has stopped.
func TestInformersThatCannotBeUsed(t *testing.T) {
	leases := func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Coordination().V1().Leases().Informer()
	}
	pods := func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Core().V1().Pods().Informer()
	}
	withoutVersion := func(obj any) (any, error) {
		obj.(*coordinationv1.Lease).ResourceVersion = ""
		return obj, nil
	}
	for name, c := range map[string]struct {
		of        func(informers.SharedInformerFactory) cache.SharedIndexInformer
		transform cache.TransformFunc
		runs      time.Duration // how long its owner runs it
		want      string
	}{
		"not started":  {of: leases, want: informer.ErrNotStarted.Error()},
		"stopped":      {of: leases, runs: time.Minute, want: informer.ErrStopped.Error()},
		"transform":    {of: leases, transform: withoutVersion, runs: time.Hour, want: informer.ErrFieldMissing.Error()},
		"another kind": {of: pods, runs: time.Hour, want: "it holds *v1.Pod, want *v1.Lease"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				named := metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "1"}
				client := fake.NewClientset(&coordinationv1.Lease{ObjectMeta: named}, &corev1.Pod{ObjectMeta: named})
				factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(c.transform))
				source := &counted{SharedIndexInformer: c.of(factory)}
				ctx, stop := context.WithTimeout(t.Context(), c.runs)
				defer factory.Shutdown()
				defer stop()
				if c.runs > 0 {
					factory.Start(ctx.Done())
				}
				view, err := identity.NewView(identity.ViewConfig{Source: source, Canary: newHub()})
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				err = view.Run(t.Context())
				var wrong *informer.Error
				if !errors.As(err, &wrong) || wrong.Option != "ViewConfig.Source" || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want an error of the informer ViewConfig.Source with %q", err, c.want)
				}
				if source.added != source.removed {
					t.Errorf("%d handlers were added and %d removed", source.added, source.removed)
				}
				most := 1100 * time.Millisecond
				if c.runs == time.Minute {
					most += c.runs
				}
				if took := time.Since(begun); took > most {
					t.Errorf("Run took %v to say so, want at most %v", took, most)
				}
			})
		})
	}
}

// counted counts the handlers of an informer.
type counted struct {
	cache.SharedIndexInformer
	added, removed int
}

func (c *counted) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	c.added++
	return c.SharedIndexInformer.AddEventHandler(h)
}

func (c *counted) RemoveEventHandler(h cache.ResourceEventHandlerRegistration) error {
	c.removed++
	return c.SharedIndexInformer.RemoveEventHandler(h)
}
