// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestOnlyTheLostAreDue shows which Leases are to be deleted, and in which order. R-ID-10, R-ID-11, R-ID-12.
func TestOnlyTheLostAreDue(t *testing.T) {
	peer := func(namespace, name string, state State, quiet time.Duration) Peer {
		return Peer{Key: types.NamespacedName{Namespace: namespace, Name: name}, State: state, Quiet: quiet, Lease: &coordinationv1.Lease{}}
	}
	found := due([]Peer{
		peer("home", "exact", Lost, time.Hour), peer("home", "old", Lost, 2*time.Hour), peer("home", "young", Lost, time.Hour-1),
		peer("home", "alive", Alive, 2*time.Hour), peer("home", "held", Suspect, 2*time.Hour), peer("home", "unconfirmed", Unconfirmed, 2*time.Hour),
		peer("abroad", "old", Lost, 2*time.Hour), peer("home", "me", Lost, 3*time.Hour), peer("abroad", "me", Lost, 3*time.Hour),
	}, types.NamespacedName{Namespace: "home", Name: "me"}, time.Hour)
	var got []string
	for _, p := range found {
		got = append(got, p.Key.String())
	}
	if want := "home/old home/exact"; strings.Join(got, " ") != want {
		t.Errorf("due are %q, want %q", got, want)
	}
}
