// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/informer"
)

// at is an informer that has come as far as a version.
type at struct {
	informer.Interface
	version string
}

func (a at) LastSyncResourceVersion() string { return a.version }

func nodeAt(name, version string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

// An object that an informer does not show is one that it leaves out only where the informer has come as far as the
// object's last change: a watch that begins late, or lags, selects no less.
func TestAnInformerThatIsBehindSelectsNoLess(t *testing.T) {
	for name, c := range map[string]struct {
		shown  []*corev1.Node
		of     informer.Interface
		wrong  error
		unsure error
	}{
		"behind all":             {nil, at{version: "10"}, nil, informer.ErrBehind},
		"behind one":             {[]*corev1.Node{nodeAt("a", "20")}, at{version: "20"}, nil, informer.ErrBehind},
		"it shows all":           {[]*corev1.Node{nodeAt("a", "20"), nodeAt("b", "30")}, at{version: "30"}, nil, nil},
		"it shows one as it was": {[]*corev1.Node{nodeAt("a", "20"), nodeAt("b", "15")}, at{version: "20"}, nil, nil},
		"as far as all":          {[]*corev1.Node{nodeAt("a", "20")}, at{version: "30"}, informer.ErrSelectsTooLittle, nil},
		"it does not say":        {[]*corev1.Node{nodeAt("a", "20")}, nil, informer.ErrSelectsTooLittle, nil},
		"it has no version yet":  {[]*corev1.Node{nodeAt("a", "20")}, at{}, informer.ErrSelectsTooLittle, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
				for _, n := range c.shown {
					if err := store.Add(n); err != nil {
						t.Fatal(err)
					}
				}
				wrong, err := informer.Sample{
					Resource: "nodes", Store: store, Informer: c.of, Fields: func(any) []informer.Field { return nil },
					List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
						return &corev1.NodeList{Items: []corev1.Node{*nodeAt("a", "20"), *nodeAt("b", "30")}}, nil
					},
				}.Compare(t.Context())
				if !errors.Is(wrong, c.wrong) || !errors.Is(err, c.unsure) {
					t.Errorf("Compare returned %v and %v, want %v and %v", wrong, err, c.wrong, c.unsure)
				}
			})
		})
	}
}
