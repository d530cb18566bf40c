// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kube/internal/matrix"
)

func decoded(raw string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(raw), &u.Object); err != nil {
		panic(err)
	}
	return u
}

// assigned is a world whose sources are in one place.
type assigned struct {
	*cluster
	assign func(context.Context, string) error
}

// Assign makes the JSON the source of the node.
func (a assigned) Assign(ctx context.Context, source string) error { return a.assign(ctx, source) }

// TestMatrixOfAnnotations tells every story of the matrix to an AnnotationSource and a ConfigMapFetcher: R-CS-21 to 30.
func TestMatrixOfAnnotations(t *testing.T) {
	for _, row := range matrix.Rows() {
		t.Run(row.Name, func(t *testing.T) {
			c := newCluster(t)
			source, err := kube.NewAnnotationSource(c.client, c.node, kube.Options{})
			must(t, err)
			tell(t, row, assigned{c, c.annotate}, source, false)
		})
	}
}

// TestMatrixOfNodeConfigs tells them to a NodeConfigSource. What the schema can see never gets as far as the node.
func TestMatrixOfNodeConfigs(t *testing.T) {
	for _, row := range matrix.Rows() {
		if row.Steps[0].Unchecked {
			continue // the schema drops it
		}
		t.Run(row.Name, func(t *testing.T) {
			c := newCluster(t)
			must(t, c.assignNodeConfig(deadline(t), ""))
			source, err := kube.NewNodeConfigSource(c.client, c.node, kube.Options{})
			must(t, err)
			tell(t, row, assigned{c, c.assignNodeConfig}, source, true)
		})
	}
}

// tell takes the steps of a row and asks source and fetcher after each. checked says that the API server refuses invalid sources.
func tell(t *testing.T, row matrix.Row, w assigned, source configsync.Source, checked bool) {
	fetcher, err := kube.NewConfigMapFetcher(w.client, kube.Options{})
	must(t, err)
	for _, step := range row.Steps {
		err := step.Do(deadline(t), w)
		if checked && errors.Is(step.Err, matrix.ErrInvalid) {
			if !apierrors.IsInvalid(err) {
				t.Errorf("%s: the API server said %v, want it refused as invalid", step.Name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", step.Name, err)
		}
		got, err := ask(deadline(t), source, fetcher)
		judge(t, step, got, err)
	}
}

// ask reads the source and fetches what it names. An empty source gives no payload.
func ask(ctx context.Context, source configsync.Source, fetcher configsync.Fetcher) (matrix.Payload, error) {
	spec, err := source.Desired(ctx)
	if err != nil || spec == nil {
		return "", err
	}
	obj, err := fetcher.Fetch(ctx, *spec)
	if err != nil {
		return "", err
	}
	return payloadOf(obj, spec.Key), nil
}

func judge(t *testing.T, step matrix.Step, got matrix.Payload, err error) {
	t.Helper()
	if got != step.Fetched {
		t.Errorf("%s: fetched %q, want %q", step.Name, got, step.Fetched)
	}
	var invalid *configsync.InvalidError
	switch {
	case step.Err == nil && err != nil:
		t.Errorf("%s: %v, want no error", step.Name, err)
	case errors.Is(step.Err, matrix.ErrInvalid) && !errors.As(err, &invalid):
		t.Errorf("%s: %v, want an invalid source", step.Name, err)
	case step.Err != nil && !errors.Is(step.Err, matrix.ErrInvalid) && !errors.Is(err, step.Err):
		t.Errorf("%s: %v, want it to wrap %v", step.Name, err, step.Err)
	case err != nil && !strings.Contains(err.Error(), step.Cause):
		t.Errorf("%s: %v, want the cause %q", step.Name, err, step.Cause)
	case err != nil && step.Err != nil && oneClass(err) != 1:
		t.Errorf("%s: %v is of %d classes, want exactly one (R-CS-29)", step.Name, err, oneClass(err))
	}
}

// oneClass counts the classes that an error belongs to.
func oneClass(err error) int {
	n := 0
	var invalid *configsync.InvalidError
	if errors.As(err, &invalid) {
		n++
	}
	for _, class := range []error{
		configsync.ErrMissing, configsync.ErrForbidden, configsync.ErrMismatch, configsync.ErrMutable, configsync.ErrUnreachable,
	} {
		if errors.Is(err, class) {
			n++
		}
	}
	return n
}
