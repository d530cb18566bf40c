// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/internal/testproc"
)

// A Bed is where [TestIdentity] runs.
type Bed struct {
	// Place returns what one case needs. It is called within the bubble, if there is one.
	Place func(t *testing.T) Place
	// Bubble runs each case in a bubble of testing/synctest: for servers that are in memory. Otherwise the cases run in parallel and take
	// about half a minute.
	Bubble bool
}

// A Place is an API server with two namespaces that are there and empty.
type Place struct {
	Namespace, Abroad string
	// Client returns a client of a namespace, another one for each process.
	Client func(namespace string) Leases
}

// Leases is a client of Leases, as client-go's LeaseInterface is.
type Leases interface {
	identity.LeaseClient
	identity.LeaseWatcher
}

// The times of the suite: as short as a real server on a busy machine keeps up with.
const (
	suiteLiveness = 10 * time.Second
	suiteHold     = 9 * time.Second
	suiteGCAfter  = 2 * suiteLiveness
	// suitePatience bounds each wait.
	suitePatience = time.Minute
)

// TestIdentity compares Member, View and Collector, with the Leases of bed, with what package identity promises: a name is kept over restarts, has
// one holder, and is given back by that one alone; who comes and goes is told; who is gone is collected, and nobody else.
func TestIdentity(t *testing.T, bed Bed) {
	for name, rule := range map[string]func(*suite){
		"WorkFindsItsLease":                   (*suite).workFindsItsLease,
		"TwentyRestartsKeepTheLease":          (*suite).restarts,
		"TheNextHolderWaitsForTheDead":        (*suite).succession,
		"ADuplicateIsTold":                    (*suite).duplicate,
		"TheLeaseIsGivenBackByItsHolder":      (*suite).release,
		"ADeletedLeaseIsLostAndComesBackAnew": (*suite).deleted,
		"WhatAnotherHasTakenIsLeftToIt":       (*suite).taken,
		"AStopLeavesWhatAnotherHasTaken":      (*suite).stolen,
		"RecordsComeAfterTheLease":            (*suite).records,
		"AViewTellsWhoComesAndGoes":           (*suite).comings,
		"ACollectorDeletesTheDeadAlone":       (*suite).collection,
	} {
		t.Run(name, func(t *testing.T) {
			if bed.Bubble {
				synctest.Test(t, func(t *testing.T) { rule(newSuite(t, bed.Place(t), NewClock(0, 1))) })
				return
			}
			t.Parallel()
			rule(newSuite(t, bed.Place(t), identity.SystemClock()))
		})
	}
}

// A suite is what a case works with.
type suite struct {
	*testing.T
	Place
	admin Leases
	clock identity.Clock
}

func newSuite(t *testing.T, place Place, clock identity.Clock) *suite {
	t.Helper()
	return &suite{T: t, Place: place, admin: place.Client(place.Namespace), clock: clock}
}

// eventually waits until done returns the empty string, which otherwise says what is missing.
func (s *suite) eventually(done func() string) {
	s.Helper()
	err := testproc.Poll(suitePatience, func() error {
		if missing := done(); missing != "" {
			return errors.New(missing)
		}
		return nil
	})
	if err != nil {
		s.Fatalf("after %v: %v", suitePatience, err)
	}
}

func (s *suite) lease(name string) *coordinationv1.Lease {
	s.Helper()
	l, err := s.admin.Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatalf("getting Lease %q: %v", name, err)
	}
	return l
}

// change edits a Lease as often as it takes.
func (s *suite) change(leases identity.LeaseClient, name string, edit func(*coordinationv1.Lease)) {
	s.Helper()
	s.eventually(func() string {
		l, err := leases.Get(s.Context(), name, metav1.GetOptions{})
		if err == nil {
			edit(l)
			_, err = leases.Update(s.Context(), l, metav1.UpdateOptions{})
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// wantThere demands that a Lease is there, or is not.
func (s *suite) wantThere(leases identity.LeaseClient, name string, want bool) {
	s.Helper()
	_, err := leases.Get(s.Context(), name, metav1.GetOptions{})
	if there := err == nil; there != want || err != nil && !apierrors.IsNotFound(err) {
		s.Errorf("Lease %q is there: %t (%v), want %t", name, there, err, want)
	}
}
