// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/belayproject/belay/internal/watch"
)

var errClient = errors.New("the client's own")

// client records the options of its calls.
type client struct{ list, watch metav1.ListOptions }

func (c *client) List(_ context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	c.list = o
	return &unstructured.UnstructuredList{}, errClient
}

func (c *client) Watch(_ context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	c.watch = o
	return nil, errClient
}

// The selector narrows both the list and the watch: a right on one name refuses anything wider.
func TestSelectorNarrowsListAndWatch(t *testing.T) {
	for name, c := range map[string]struct {
		selector watch.Selector
		want     string
	}{
		"everything": {nil, ""}, "one name": {watch.SelectName("n1"), "metadata.name=n1"},
	} {
		var asked client
		lw := watch.NewListWatch[*unstructured.UnstructuredList](&asked, c.selector)
		o := metav1.ListOptions{ResourceVersion: "7"}
		if _, err := lw.ListWithContextFunc(t.Context(), o); !errors.Is(err, errClient) {
			t.Errorf("%s: list: %v, want the client's error", name, err)
		}
		if _, err := lw.WatchFuncWithContext(t.Context(), o); !errors.Is(err, errClient) {
			t.Errorf("%s: watch: %v, want the client's error", name, err)
		}
		want := metav1.ListOptions{ResourceVersion: "7", FieldSelector: c.want}
		if asked.list.String() != want.String() || asked.watch.String() != want.String() {
			t.Errorf("%s: asked for %v and %v, want %v", name, asked.list, asked.watch, want)
		}
	}
}
