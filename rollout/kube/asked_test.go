// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// What is asked for is the same in whatever order a cache lists it, and another one with each change of a spec in the domain.
func TestAskedHasNoOrder(t *testing.T) {
	made := func(uid, domain string) *v1alpha1.Rollout {
		r := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), Generation: 1}}
		r.Spec.Domain = domain
		return r
	}
	all := []*v1alpha1.Rollout{made("a", "fleet"), made("b", "fleet"), made("c", "other")}
	s := must1(kube.NewRollouts(dynamic.NewForConfigOrDie(&rest.Config{}), kube.RolloutsOptions{
		Domain: "fleet", List: func() []*v1alpha1.Rollout { return slices.Clone(all) },
		Revision: func(string) (*v1alpha1.Revision, bool) { return nil, false },
	}))
	first := s.Asked()
	slices.Reverse(all)
	if again := s.Asked(); again != first || first == "" {
		t.Errorf("got %q, and %q with the same in another order", first, again)
	}
	all[0].Generation++ // of another domain
	if again := s.Asked(); again != first {
		t.Errorf("got %q, and %q after a change in another domain", first, again)
	}
	all[1].Generation++
	if again := s.Asked(); again == first {
		t.Errorf("got %q after a change of a rollout of the domain too", again)
	}
}
