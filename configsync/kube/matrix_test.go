// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kube/internal/matrix"
	"github.com/belayproject/belay/internal/tier"
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

// TestMatrixOfAnnotations tells every story of the matrix to a NewAnnotationSource and a ConfigMapFetcher: R-CS-21..30.
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
		if err := judge(deadline(t), step, source, fetcherOf(t, w.cluster)); err != nil {
			t.Error(err)
		}
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

// judge compares what source and fetcher say with what a step asks for.
func judge(ctx context.Context, step matrix.Step, source configsync.Source, fetcher configsync.Fetcher) error {
	got, err := ask(ctx, source, fetcher)
	var invalid *configsync.InvalidError
	var want string
	switch {
	case got != step.Fetched:
		want = fmt.Sprintf("the payload %q to be fetched", step.Fetched)
	case step.Err == nil && err != nil:
		want = "no error"
	case errors.Is(step.Err, matrix.ErrInvalid) && !errors.As(err, &invalid):
		want = "an invalid source"
	case step.Err != nil && !errors.Is(step.Err, matrix.ErrInvalid) && !errors.Is(err, step.Err):
		want = fmt.Sprintf("it to wrap %q", step.Err)
	case err != nil && !strings.Contains(err.Error(), step.Cause):
		want = fmt.Sprintf("the cause %q", step.Cause)
	case err != nil && classes(err) != 1:
		want = "it to be of one class (R-CS-29)"
	default:
		return nil
	}
	return fmt.Errorf("%s: got payload %q, error %q, want %s", step.Name, got, fmt.Sprint(err), want)
}

// classes counts the classes that an error belongs to.
func classes(err error) int {
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

// broken is a source and a fetcher with a fault.
type broken struct {
	configsync.Source
	configsync.Fetcher
	desired func(*configsync.Spec, error) (*configsync.Spec, error)
	spec    func(configsync.Spec) configsync.Spec
	fetched func(configsync.Object, error) (configsync.Object, error)
}

// Desired is that of the source, spoilt.
func (b broken) Desired(ctx context.Context) (*configsync.Spec, error) {
	spec, err := b.Source.Desired(ctx)
	if b.desired == nil {
		return spec, err
	}
	return b.desired(spec, err)
}

// Fetch is that of the fetcher, spoilt.
func (b broken) Fetch(ctx context.Context, s configsync.Spec) (configsync.Object, error) {
	if b.spec != nil {
		s = b.spec(s)
	}
	obj, err := b.Fetcher.Fetch(ctx, s)
	if b.fetched == nil {
		return obj, err
	}
	return b.fetched(obj, err)
}

// TestMatrixCatches shows that the matrix notices each fault that it is there for.
func TestMatrixCatches(t *testing.T) {
	tier.LeaveToProofs(t, "the matrix notices each of eight faults")
	t.Parallel()
	for name, fault := range map[string]broken{
		"invalid taken for empty": {desired: func(s *configsync.Spec, err error) (*configsync.Spec, error) {
			var invalid *configsync.InvalidError
			if errors.As(err, &invalid) {
				return nil, nil
			}
			return s, err
		}},
		"everything unreachable": {fetched: func(o configsync.Object, err error) (configsync.Object, error) {
			if err != nil {
				err = configsync.ErrUnreachable
			}
			return o, err
		}},
		"UID not compared":       {spec: func(s configsync.Spec) configsync.Spec { s.UID = ""; return s }},
		"digest not compared":    {spec: withoutDigest},
		"mutable objects pinned": {spec: func(s configsync.Spec) configsync.Spec { s.Policy = configsync.Follow; return s }},
		"key not handed on":      {desired: func(s *configsync.Spec, err error) (*configsync.Spec, error) { return keyless(s), err }},
		"missing taken for empty": {fetched: func(o configsync.Object, err error) (configsync.Object, error) {
			return o, onlyUnless(err, configsync.ErrMissing)
		}},
		"edits not seen": {fetched: first()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, row := range matrix.Rows() {
				if errors.Is(row.Steps[0].Err, matrix.ErrInvalid) && fault.desired == nil {
					continue // it never gets as far as this fault
				}
				if caught := tellBroken(t, row, fault); caught != nil {
					t.Logf("caught by %q: %v", row.Name, caught)
					return
				}
			}
			t.Error("no row of the matrix noticed the fault")
		})
	}
}

func withoutDigest(s configsync.Spec) configsync.Spec {
	if s.Digest != "" {
		s.Digest, s.Policy = "", configsync.Follow
	}
	return s
}

func keyless(s *configsync.Spec) *configsync.Spec {
	if s != nil {
		s.Key = ""
	}
	return s
}

func onlyUnless(err, class error) error {
	if errors.Is(err, class) {
		return nil
	}
	return err
}

// first answers each fetch of a name with the first object of that name.
func first() func(configsync.Object, error) (configsync.Object, error) {
	seen := map[string]configsync.Object{}
	return func(o configsync.Object, err error) (configsync.Object, error) {
		if old, ok := seen[o.Namespace+o.Name]; ok && err == nil {
			return old, nil
		}
		seen[o.Namespace+o.Name] = o
		return o, err
	}
}

func tellBroken(t *testing.T, row matrix.Row, fault broken) error {
	c := newCluster(t)
	source, err := kube.NewAnnotationSource(c.client, c.node, kube.Options{})
	must(t, err)
	fault.Source, fault.Fetcher = source, fetcherOf(t, c)
	for _, step := range row.Steps {
		must(t, step.Do(deadline(t), assigned{c, c.annotate}))
		if err := judge(deadline(t), step, fault, fault); err != nil {
			return err
		}
	}
	return nil
}
