// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/identity"
)

// A LeaseBed is where [TestLeases] runs.
type LeaseBed struct {
	// Leases returns a client of a namespace that exists and is empty.
	Leases func(t *testing.T) identity.LeaseClient
}

// TestLeases compares the Leases of bed with the rules of the API server on which package identity relies: conditional writes and
// deletions, versions that grow, and what is refused. A fake that passes it is fit for tests of members.
func TestLeases(t *testing.T, bed LeaseBed) {
	for name, rule := range map[string]func(*leaseTest){
		"WhatIsCreatedIsRead":                      (*leaseTest).createdIsRead,
		"ASecondCreateIsAlreadyExists":             (*leaseTest).secondCreate,
		"AnOldVersionIsAConflict":                  (*leaseTest).oldVersion,
		"AnUpdateNeedsAVersion":                    (*leaseTest).noVersion,
		"AnUpdateOfADeletedLeaseIsAConflict":       (*leaseTest).updateOfDeleted,
		"AnUpdateOfARecreatedLeaseIsAConflict":     (*leaseTest).updateOfRecreated,
		"VersionsGrowAcrossNamesAndDeletions":      (*leaseTest).versionsGrow,
		"AnUpdateThatChangesNothingWritesNothing":  (*leaseTest).noChange,
		"AnUpdateReplacesLabelsAndAnnotations":     (*leaseTest).replaces,
		"ADeleteTestsItsPreconditions":             (*leaseTest).preconditions,
		"ADeleteOfTheWatchedVersionMissesARenewal": (*leaseTest).deleteAfterRenewal,
		"WhatIsInvalidIsRefused":                   (*leaseTest).invalid,
		"AContextThatHasEndedMakesNoRequest":       (*leaseTest).endedContext,
	} {
		t.Run(name, func(t *testing.T) { rule(&leaseTest{T: t, leases: bed.Leases(t)}) })
	}
}

// A leaseTest makes requests that must succeed, or fail in one way.
type leaseTest struct {
	*testing.T
	leases identity.LeaseClient
}

func lease(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{identity.ComponentLabel: "c"}},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(name + "_1"), LeaseDurationSeconds: ptr.To[int32](3600), LeaseTransitions: ptr.To[int32](0),
			RenewTime: &metav1.MicroTime{Time: time.Unix(1000, 0)},
		},
	}
}

func renewed(l *coordinationv1.Lease) *coordinationv1.Lease {
	next := l.DeepCopy()
	next.Spec.RenewTime = &metav1.MicroTime{Time: next.Spec.RenewTime.Add(time.Second)}
	return next
}

func (t *leaseTest) create(l *coordinationv1.Lease) *coordinationv1.Lease {
	t.Helper()
	made, err := t.leases.Create(t.Context(), l, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating Lease %q: %v", l.Name, err)
	}
	return made
}

func (t *leaseTest) update(l *coordinationv1.Lease) *coordinationv1.Lease {
	t.Helper()
	next, err := t.leases.Update(t.Context(), l, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("updating Lease %q: %v", l.Name, err)
	}
	return next
}

func (t *leaseTest) delete(name string) {
	t.Helper()
	if err := t.leases.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting Lease %q: %v", name, err)
	}
}

func (t *leaseTest) get(name string) *coordinationv1.Lease {
	t.Helper()
	found, err := t.leases.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("getting Lease %q: %v", name, err)
	}
	return found
}

func (t *leaseTest) want(err error, is func(error) bool, what string) {
	t.Helper()
	if err == nil || !is(err) {
		t.Errorf("got %v (%T), want %s", err, err, what)
	}
}

func (t *leaseTest) version(l *coordinationv1.Lease) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(l.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatalf("resourceVersion %q is no decimal number: %v", l.ResourceVersion, err)
	}
	return v
}

func (t *leaseTest) createdIsRead() {
	made, found := t.create(lease("a")), t.get("a")
	if made.UID == "" || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() || made.Namespace == "" {
		t.Errorf("the server has set uid %q, resourceVersion %q, creationTimestamp %v, namespace %q: want all of them",
			made.UID, made.ResourceVersion, made.CreationTimestamp, made.Namespace)
	}
	if found.UID != made.UID || found.ResourceVersion != made.ResourceVersion || *found.Spec.HolderIdentity != "a_1" ||
		!found.Spec.RenewTime.Equal(made.Spec.RenewTime) || found.Labels[identity.ComponentLabel] != "c" {
		t.Errorf("read %v, created %v", found, made)
	}
	_, err := t.leases.Get(t.Context(), "b", metav1.GetOptions{})
	t.want(err, apierrors.IsNotFound, "NotFound for a Lease that is not there")
}

func (t *leaseTest) secondCreate() {
	t.create(lease("a"))
	_, err := t.leases.Create(t.Context(), lease("a"), metav1.CreateOptions{})
	t.want(err, apierrors.IsAlreadyExists, "AlreadyExists")
}

func (t *leaseTest) oldVersion() {
	first := t.create(lease("a"))
	t.update(renewed(first))
	_, err := t.leases.Update(t.Context(), renewed(renewed(first)), metav1.UpdateOptions{})
	t.want(err, apierrors.IsConflict, "Conflict for an update of a version that is no longer stored")
}

func (t *leaseTest) noVersion() {
	l := renewed(t.create(lease("a")))
	l.ResourceVersion = ""
	_, err := t.leases.Update(t.Context(), l, metav1.UpdateOptions{})
	t.want(err, apierrors.IsInvalid, "Invalid for an update without a resourceVersion")
}

// updateOfDeleted: a PUT can create a Lease, so that a missing one is found out by its UID.
func (t *leaseTest) updateOfDeleted() {
	l := t.create(lease("a"))
	t.delete("a")
	_, err := t.leases.Update(t.Context(), renewed(l), metav1.UpdateOptions{})
	t.want(err, apierrors.IsConflict, "Conflict for an update, with its UID, of a Lease that was deleted")
	if _, err := t.leases.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the update of a deleted Lease has made one: %v", err)
	}
}

func (t *leaseTest) updateOfRecreated() {
	old := t.create(lease("a"))
	t.delete("a")
	fresh := t.create(lease("a"))
	if old.UID == fresh.UID {
		t.Errorf("the Lease that was made again has UID %q as before", old.UID)
	}
	l := renewed(old)
	l.ResourceVersion = fresh.ResourceVersion
	_, err := t.leases.Update(t.Context(), l, metav1.UpdateOptions{})
	t.want(err, apierrors.IsConflict, "Conflict for an update with the UID of the Lease before")
}

func (t *leaseTest) versionsGrow() {
	a := t.create(lease("a"))
	b := t.create(lease("b"))
	a2 := t.update(renewed(a))
	t.delete("a")
	a3 := t.create(lease("a"))
	last := uint64(0)
	for _, l := range []*coordinationv1.Lease{a, b, a2, a3} {
		if v := t.version(l); v <= last {
			t.Errorf("Lease %q has resourceVersion %d after %d", l.Name, v, last)
		}
		last = t.version(l)
	}
}

func (t *leaseTest) noChange() {
	l := t.create(lease("a"))
	if next := t.update(l); next.ResourceVersion != l.ResourceVersion {
		t.Errorf("an update without a change went from resourceVersion %q to %q", l.ResourceVersion, next.ResourceVersion)
	}
}

func (t *leaseTest) replaces() {
	l := t.create(lease("a"))
	l.Labels, l.Annotations = map[string]string{"x": "y"}, map[string]string{"p": "q"}
	l.Spec = coordinationv1.LeaseSpec{HolderIdentity: ptr.To("")}
	t.update(l)
	found := t.get("a")
	if len(found.Labels) != 1 || found.Labels["x"] != "y" || found.Annotations["p"] != "q" || found.Spec.RenewTime != nil ||
		ptr.Deref(found.Spec.HolderIdentity, "none") != "" {
		t.Errorf("after the update the Lease is %v", found)
	}
}

func (t *leaseTest) preconditions() {
	l := t.create(lease("a"))
	other, old := types.UID("00000000-0000-4000-8000-00000000dead"), "1"
	for _, p := range []*metav1.Preconditions{{UID: &other}, {ResourceVersion: &old}, {UID: &l.UID, ResourceVersion: &old}} {
		err := t.leases.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: p})
		t.want(err, apierrors.IsConflict, "Conflict for a precondition that does not hold")
	}
	good := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}}
	if err := t.leases.Delete(t.Context(), "a", good); err != nil {
		t.Errorf("deleting with preconditions that hold: %v", err)
	}
	t.want(t.leases.Delete(t.Context(), "a", good), apierrors.IsNotFound, "NotFound for the second deletion")
}

// deleteAfterRenewal is R-ID-10: what a collector relies on.
func (t *leaseTest) deleteAfterRenewal() {
	watched := t.create(lease("a"))
	t.update(renewed(watched))
	err := t.leases.Delete(t.Context(), "a", metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &watched.UID, ResourceVersion: &watched.ResourceVersion},
	})
	t.want(err, apierrors.IsConflict, "Conflict for a deletion of the version before the renewal")
	t.get("a")
}

func (t *leaseTest) invalid() {
	for what, change := range map[string]func(*coordinationv1.Lease){
		"a duration of 0":         func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To[int32](0) },
		"-1 transitions":          func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To[int32](-1) },
		"a label of 64 bytes":     func(l *coordinationv1.Lease) { l.Labels["x"] = strings.Repeat("a", 64) },
		"a label with a space":    func(l *coordinationv1.Lease) { l.Labels["x"] = "a b" },
		"a name with upper case":  func(l *coordinationv1.Lease) { l.Name = "A" },
		"a name of 254 bytes":     func(l *coordinationv1.Lease) { l.Name = strings.Repeat("a", 254) },
		"an annotation key of \\": func(l *coordinationv1.Lease) { l.Annotations = map[string]string{"\\": ""} },
	} {
		l := lease("a")
		change(l)
		_, err := t.leases.Create(t.Context(), l, metav1.CreateOptions{})
		t.want(err, apierrors.IsInvalid, "Invalid for "+what)
	}
}

func (t *leaseTest) endedContext() {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := t.leases.Create(ctx, lease("a"), metav1.CreateOptions{}); err == nil {
		t.Error("a request with a context that has ended succeeded")
	}
	_, err := t.leases.Get(t.Context(), "a", metav1.GetOptions{})
	t.want(err, apierrors.IsNotFound, "NotFound: nothing was created")
}
