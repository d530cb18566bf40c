// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// An attempt has ended when the shadow of its node in the cache says so, and of no other node, attempt or domain (R-RO-27).
func TestEndedIsOfTheSlot(t *testing.T) {
	sh := &v1alpha1.NodeShadow{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	sh.Spec.NodeUID, sh.Spec.Domain = "uid-a", "fleet"
	done := v1alpha1.NodeShadowStatus{Known: true, Attempt: 4, Phase: v1alpha1.Phase(protocol.PhaseDone)}
	verifying, unknown := done, done
	verifying.Phase, unknown.Known = v1alpha1.Phase(protocol.PhaseVerifying), false
	for _, c := range []struct {
		name   string
		status v1alpha1.NodeShadowStatus
		domain string
		slot   protocol.Slot
		want   bool
	}{
		{"done", done, "fleet", protocol.Slot{UID: "uid-a", Attempt: 4}, true},
		{"a later one", done, "fleet", protocol.Slot{UID: "uid-a", Attempt: 3}, true},
		{"the one before", done, "fleet", protocol.Slot{UID: "uid-a", Attempt: 5}, false},
		{"another node", done, "fleet", protocol.Slot{UID: "uid-b", Attempt: 4}, false},
		{"another domain", done, "other", protocol.Slot{UID: "uid-a", Attempt: 4}, false},
		{"in flight", verifying, "fleet", protocol.Slot{UID: "uid-a", Attempt: 4}, false},
		{"not known", unknown, "fleet", protocol.Slot{UID: "uid-a", Attempt: 4}, false},
	} {
		sh.Status = c.status
		shadows := must1(kube.NewShadows(dynamic.NewForConfigOrDie(&rest.Config{}))).In(c.domain)
		cached := must1(kube.NewRecords(shadows, func() []*v1alpha1.NodeShadow { return []*v1alpha1.NodeShadow{sh} }))
		if got := cached.Ended([]protocol.Slot{{UID: "uid-c", Attempt: 1}, c.slot}); got != c.want {
			t.Errorf("%s: ended %t, want %t", c.name, got, c.want)
		}
		if must1(kube.NewRecords(shadows, nil)).Ended([]protocol.Slot{c.slot}) {
			t.Errorf("%s: ended without a cache", c.name)
		}
	}
}
