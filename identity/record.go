// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/internal/resourceversion"
)

// A claim is what differs from one hold to the next.
type claim struct {
	holder string
	// epoch may be 0: then none is written. lock is the file that is locked, see idOf, "" if none.
	epoch uint64
	lock  string
}

// claimed gives the Lease as an acquisition writes it. old is the one that was read, nil where there is none; what others have
// added to it stays.
func (s Spec) claimed(old *coordinationv1.Lease, c claim, now time.Time) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	transitions := int32(0)
	if old != nil {
		l = old.DeepCopy()
		transitions = nextTransition(old, c.holder)
	}
	s.describe(l, c)
	at := stamp(old, now)
	l.Spec.HolderIdentity = &c.holder
	l.Spec.AcquireTime, l.Spec.RenewTime = &at, &at
	l.Spec.LeaseTransitions = &transitions
	s.forgetOwners(l)
	return l
}

// restored gives a Lease of ours that somebody has edited with all that we have to say in it. What others have added stays.
func (s Spec) restored(l *coordinationv1.Lease, c claim) *coordinationv1.Lease {
	next := *l
	s.describe(&next, c)
	return &next
}

// describe sets what stays the same for as long as a Lease is held. It changes no map that l has.
func (s Spec) describe(l *coordinationv1.Lease, c claim) {
	s.label(l)
	s.annotate(l, c)
	if s.Owner != nil {
		l.OwnerReferences = []metav1.OwnerReference{*s.Owner}
	}
	l.Spec.LeaseDurationSeconds = ptr.To(int32(s.Timing.Duration / time.Second))
}

func (s Spec) label(l *coordinationv1.Lease) {
	labels := maps.Clone(l.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, s.Labels)
	labels[ComponentLabel] = s.Component
	setOrDelete(labels, HostLabel, s.Host, len(validation.IsValidLabelValue(s.Host)) == 0)
	l.Labels = labels
}

func (s Spec) annotate(l *coordinationv1.Lease, c claim) {
	annotations := maps.Clone(l.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, s.Annotations)
	annotations[HostAnnotation] = text(s.Host)
	annotations[FingerprintAnnotation] = s.Fingerprint.encode()
	setOrDelete(annotations, EpochAnnotation, strconv.FormatUint(c.epoch, 10), c.epoch != 0)
	setOrDelete(annotations, lockFileAnnotation, c.lock, c.lock != "")
	l.Annotations = annotations
}

func setOrDelete(m map[string]string, key, value string, set bool) {
	if set {
		m[key] = value
	} else {
		delete(m, key)
	}
}

// forgetOwners asks the server to drop the record of who owns which field: one empty entry is how that is said.
func (s Spec) forgetOwners(l *coordinationv1.Lease) {
	if s.OmitManagedFields {
		l.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	}
}

// renewed gives the Lease as a renewal writes it. It shares with l whatever does not change.
func (s Spec) renewed(l *coordinationv1.Lease, epoch uint64, now time.Time) *coordinationv1.Lease {
	next := *l
	at := stamp(l, now)
	next.Spec.RenewTime = &at
	if number := strconv.FormatUint(epoch, 10); l.Annotations[EpochAnnotation] != number {
		next.Annotations = maps.Clone(l.Annotations)
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		next.Annotations[EpochAnnotation] = number
	}
	s.forgetOwners(&next)
	return &next
}

// stamp is the time for a write on top of old. It differs from the one that is there, since the server makes no new version of an object
// that does not change, and a wall clock may stand still.
func stamp(old *coordinationv1.Lease, now time.Time) metav1.MicroTime {
	at := metav1.NewMicroTime(now.Truncate(time.Microsecond))
	if old != nil && old.Spec.RenewTime != nil && at.Equal(old.Spec.RenewTime) {
		at = metav1.NewMicroTime(at.Add(time.Microsecond))
	}
	return at
}

// nextTransition counts a change of the holder. Whatever stands in the Lease, the result is a number that the server takes.
func nextTransition(old *coordinationv1.Lease, holder string) int32 {
	n := max(0, ptr.Deref(old.Spec.LeaseTransitions, 0))
	if holderOf(old) == holder || n == math.MaxInt32 {
		return n
	}
	return n + 1
}

// holderOf is who is in a Lease, "" where nobody is.
func holderOf(l *coordinationv1.Lease) string { return ptr.Deref(l.Spec.HolderIdentity, "") }

// fingerprintOf is what the holder wrote, the zero Fingerprint where that cannot be read.
func fingerprintOf(l *coordinationv1.Lease) Fingerprint {
	var f Fingerprint
	if json.Unmarshal([]byte(l.Annotations[FingerprintAnnotation]), &f) != nil {
		return Fingerprint{}
	}
	return f
}

func (f Fingerprint) encode() string {
	f.Host = text(f.Host)
	b, err := json.Marshal(f)
	if err != nil {
		return ""
	}
	return string(b)
}

// text gives a string as it is if it is valid UTF-8, as the API demands, and quoted as in Go if it is not.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strconv.Quote(s)
}

// epochBits bounds the epochs: a number of 2^62 or more is neither believed nor given out. No server has made so many versions: somebody has
// forged it, and on top of the greatest number there would be no greater one.
const epochBits = 62

// epochOf is the number that the holder wrote, 0 where that cannot be read or is not believed.
func epochOf(l *coordinationv1.Lease) uint64 {
	n, err := strconv.ParseUint(l.Annotations[EpochAnnotation], 10, epochBits)
	if err != nil {
		return 0
	}
	return n
}

// versionOf is the resourceVersion as a number. KEP-5504 promises that it is one, and that it grows.
func versionOf(l *coordinationv1.Lease) (uint64, error) {
	version := l.ResourceVersion
	_, err := resourceversion.Compare(version, version)
	n := uint64(0)
	if err == nil {
		n, err = strconv.ParseUint(version, 10, 63)
	}
	if err != nil {
		return 0, fmt.Errorf("taking the epoch of Lease %q from its resourceVersion %q: %w", l.Namespace+"/"+l.Name, version, err)
	}
	return n, nil
}

// adoptedEpoch is the number of a hold on top of a Lease: more than any that was given out under this name. The holder before had the
// number that it wrote; or it had not written it yet, then its number is at most the resourceVersion. own is the last one of this process.
func adoptedEpoch(stored, version, own uint64) uint64 { return max(stored, version, own) + 1 }

// createdEpoch is the number of a hold of a Lease that was just created in this version: all versions of the ones before were less.
func createdEpoch(version, own uint64) uint64 { return max(version, own+1) }
