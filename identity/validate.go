// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ownKeys is the prefix of the labels and annotations that the package writes.
const ownKeys = "identity.belay.dev/"

// complete gives the spec with its defaults, and an error that lists every field that is wrong.
func (s Spec) complete() (Spec, error) {
	s.Labels, s.Annotations, s.Owner = maps.Clone(s.Labels), maps.Clone(s.Annotations), s.Owner.DeepCopy()
	s.Fingerprint.Host = cmp.Or(s.Fingerprint.Host, s.Host)
	s.OnDuplicate = cmp.Or(s.OnDuplicate, FailOnDuplicate)
	s.Timing = s.Timing.complete()
	errs := append(s.validate(), s.Timing.validate(field.NewPath("Timing"))...)
	return s, errs.ToAggregate()
}

// complete fills the zero fields.
func (t Timing) complete() Timing {
	d := ControlPlane()
	return Timing{
		Renew: cmp.Or(t.Renew, d.Renew), Jitter: cmp.Or(t.Jitter, d.Jitter), Hold: cmp.Or(t.Hold, d.Hold),
		Liveness: cmp.Or(t.Liveness, d.Liveness), Duration: cmp.Or(t.Duration, d.Duration), Stop: cmp.Or(t.Stop, d.Stop),
	}
}

func (s Spec) validate() field.ErrorList {
	var errs field.ErrorList
	add := func(name, value string, problems []string) {
		if len(problems) > 0 {
			errs = append(errs, field.Invalid(field.NewPath(name), value, strings.Join(problems, "; ")))
		}
	}
	add("Namespace", s.Namespace, validation.IsDNS1123Label(s.Namespace))
	add("Name", s.Name, validation.IsDNS1123Subdomain(s.Name))
	if s.Component == "" {
		errs = append(errs, field.Required(field.NewPath("Component"), "what kind of process this is, as a label value, such as belay-agent"))
	}
	add("Component", s.Component, validation.IsValidLabelValue(s.Component))
	if s.Host == "" {
		errs = append(errs, field.Required(field.NewPath("Host"), "the name of the host"))
	}
	if len(s.Host) > maxHashed {
		errs = append(errs, field.TooLong(field.NewPath("Host"), "", maxHashed))
	}
	if s.OnDuplicate != FailOnDuplicate && s.OnDuplicate != WaitOnDuplicate {
		errs = append(errs, field.NotSupported(field.NewPath("OnDuplicate"), s.OnDuplicate, []OnDuplicate{FailOnDuplicate, WaitOnDuplicate}))
	}
	if s.LockFile != "" && !filepath.IsAbs(s.LockFile) {
		errs = append(errs, field.Invalid(field.NewPath("LockFile"), s.LockFile, "must be an absolute path"))
	}
	errs = append(errs, s.validateFingerprint()...)
	errs = append(errs, metav1validation.ValidateLabels(s.Labels, field.NewPath("Labels"))...)
	errs = append(errs, foreignKeys(s.Labels, field.NewPath("Labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(s.Annotations, field.NewPath("Annotations"))...)
	return append(errs, foreignKeys(s.Annotations, field.NewPath("Annotations"))...)
}

func (s Spec) validateFingerprint() field.ErrorList {
	var errs field.ErrorList
	f := field.NewPath("Fingerprint")
	if s.Fingerprint.BootID == "" && s.Fingerprint.PodUID == "" {
		errs = append(errs, field.Required(f, "its BootID or its PodUID must be set, see LocalFingerprint"))
	}
	if s.Nodes != nil && s.Node == "" {
		errs = append(errs, field.Required(field.NewPath("Node"), "the name of the Node to ask Nodes for"))
	}
	if s.Nodes != nil && s.Fingerprint.NodeUID == "" {
		errs = append(errs, field.Required(f.Child("NodeUID"), "the UID that the Node must have, as Nodes is set"))
	}
	if s.Nodes != nil && (s.Owner == nil || string(s.Owner.UID) != s.Fingerprint.NodeUID) {
		errs = append(errs, field.Required(field.NewPath("Owner"), "the Node with the UID of Fingerprint.NodeUID, as Nodes is set: "+
			"the Lease goes with its Node, and a member that holds it does not learn of the end of the Node by anything else"))
	}
	return errs
}

// foreignKeys finds the keys that only the package may write.
func foreignKeys(m map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for k := range m {
		if strings.HasPrefix(k, ownKeys) {
			errs = append(errs, field.Forbidden(path.Key(k), "keys below "+ownKeys+" are written by the package"))
		}
	}
	return errs
}

// validate checks what makes the promise hold: several renewals fit into a hold, and the hold ends before anybody may call the
// member lost.
func (t Timing) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(ok bool, name string, value any, want string) {
		if !ok {
			errs = append(errs, field.Invalid(path.Child(name), fmt.Sprint(value), want))
		}
	}
	check(t.Renew >= time.Second, "Renew", t.Renew, "must be at least 1s")
	check(t.Jitter >= 0 && t.Jitter <= 0.5, "Jitter", t.Jitter, "must be from 0 to 0.5")
	check(t.Hold/2 >= t.longest(), "Hold", t.Hold, "must be at least 2 × Renew × (1 + Jitter), "+(2*t.longest()).String())
	check(t.Hold <= tenths(t.Liveness, 9), "Hold", t.Hold, "must be at most 0.9 × Liveness, "+tenths(t.Liveness, 9).String())
	check(t.Duration >= time.Second, "Duration", t.Duration, "must be at least 1s")
	check(t.Duration%time.Second == 0, "Duration", t.Duration, "must be whole seconds")
	check(t.Duration/time.Second <= math.MaxInt32, "Duration", t.Duration, "must be at most 2147483647 s")
	check(t.Duration/3 >= t.Renew, "Duration", t.Duration, "must be at least 3 × Renew, "+(3*t.Renew).String())
	check(t.Stop > 0, "Stop", t.Stop, "must be more than 0")
	return errs
}

// tenths is n tenths of d, without overflow.
func tenths(d time.Duration, n int64) time.Duration { return d / 10 * time.Duration(n) }
