// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

var (
	digest = "sha256:" + strings.Repeat("0f", 32)
	dryRun = []string{metav1.DryRunAll}
)

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A served is one kind on the server.
type served struct {
	dynamic.ResourceInterface
	t    *testing.T
	kind string
}

// serve installs the definitions and returns a client of one of the kinds.
func serve(t *testing.T, kind string, resource schema.GroupVersionResource) served {
	t.Helper()
	env := shared.Env(t)
	if err := env.InstallCRDs(deadline(t), v1alpha1.CRDs()...); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	return served{client.Resource(resource), t, kind}
}

// object makes one from JSON.
func (s served) object(name, spec string) *unstructured.Unstructured {
	s.t.Helper()
	u := &unstructured.Unstructured{}
	raw := `{"apiVersion":"belay.dev/v1alpha1","kind":"` + s.kind + `","metadata":{"name":"` + name + `"},"spec":` + spec + `}`
	if err := json.Unmarshal([]byte(raw), &u.Object); err != nil {
		s.t.Fatal(err)
	}
	return u
}

// create stores an object, or only asks whether it would be.
func (s served) create(name, spec string, dry ...string) error {
	s.t.Helper()
	_, err := s.Create(deadline(s.t), s.object(name, spec), metav1.CreateOptions{DryRun: dry})
	return err
}

// merge stores a merge patch, or only asks whether it would be.
func (s served) merge(name, patch string, dry []string, subresource ...string) error {
	s.t.Helper()
	_, err := s.Patch(deadline(s.t), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dry}, subresource...)
	return err
}

// must stores it.
func (s served) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// causes are what the server has against an object.
func causes(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var all []string
	for _, c := range status.Status().Details.Causes {
		all = append(all, c.Message)
	}
	return all
}

// A sole collects which rules have been the only reason for a refusal: without them, what they refuse would be accepted.
type sole map[string]bool

// judge checks the server's answer to one row.
func (s sole) judge(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v, want it accepted", err)
	case want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want it refused as invalid with %q", err, want)
	}
	if c := causes(err); len(c) == 1 {
		s[c[0]] = true
	}
}

// each checks that every rule of the definition that holds the kind is needed.
func (s sole) each(t *testing.T, kind string) {
	t.Helper()
	for _, rule := range rulesOf(t, kind) {
		found := false
		for cause := range s {
			found = found || strings.Contains(cause, rule)
		}
		if !found {
			t.Errorf("no row is refused by this rule alone: %q", rule)
		}
	}
}
