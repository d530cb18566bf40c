// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belayproject/belay/rollout"
)

// InFields names the fields of errors of [rollout.Plan], which are those of a policy, as they are named in the Rollout that the policy is of.
func InFields(r *Rollout, err error) error {
	if all, joined := err.(interface{ Unwrap() []error }); joined { // each of them by itself
		var errs []error
		for _, e := range all.Unwrap() {
			errs = append(errs, InFields(r, e))
		}
		return errors.Join(errs...)
	}
	var f *rollout.FieldError
	if !errors.As(err, &f) {
		return err
	}
	return &rollout.FieldError{Field: orEmpty(r).fieldOf(f.Field), Value: f.Value, Want: f.Want}
}

// fieldOf is the field of a Rollout that a field of its policy comes from.
func (r *Rollout) fieldOf(field string) string {
	targets := "spec."
	if r.rollback() != nil {
		targets = "status.rollback."
	}
	head, rest, nested := strings.Cut(field, ".")
	if nested {
		rest = "." + rest
	}
	switch head {
	case "uid":
		return "metadata.uid"
	case "target":
		return targets + "revision" + rest
	case "completed":
		return "status.completed.revision" + rest
	case "commitWithin", "drainWithin", "applyWithin", "verifyWithin":
		return "spec.deadlines." + strings.TrimSuffix(head, "Within")
	case "critical":
		return "spec.critical.selector"
	}
	if r.isOfWayBack(head) {
		return "spec.rollback." + field
	}
	if r.Spec.Selector != nil && strings.HasPrefix(head, "groups[") {
		return "spec.selector"
	}
	if own, ok := strings.CutPrefix(rest, ".target"); ok {
		return "spec." + head + ".revision" + own
	}
	if _, ok := strings.CutPrefix(rest, ".completed"); ok {
		return "status.completed.groups"
	}
	return "spec." + field
}

// isOfWayBack reports whether a field of the policy, by its first part, comes from the plan for the way back.
func (r *Rollout) isOfWayBack(head string) bool {
	back := r.wayBack()
	return back != nil && (strings.HasPrefix(head, "stages[") || strings.HasPrefix(head, "caps") && len(back.Caps) > 0)
}

// windows reads the windows.
func (c *converter) windows(windows []Window) []rollout.Window {
	var all []rollout.Window
	for i, w := range windows {
		field := fmt.Sprintf("spec.windows[%d]", i)
		out := rollout.Window{Open: c.clock(field+".open", w.Open), Close: c.clock(field+".close", w.Close)}
		for j, d := range w.Days {
			day, known := dayOf(d)
			if !known {
				c.refuse(fmt.Sprintf("%s.days[%d]", field, j), string(d), "a day from Monday to Sunday")
			}
			out.Days = append(out.Days, day)
		}
		if w.Zone != "" {
			zone, err := time.LoadLocation(w.Zone)
			if err != nil || w.Zone == "Local" {
				c.refuse(field+".zone", w.Zone, "the IANA name of a time zone that is known here, such as Europe/Berlin, or none for UTC")
			}
			out.Zone = zone
		}
		all = append(all, out)
	}
	return all
}

// clock reads a time of day, up to 24:00.
func (c *converter) clock(field, text string) time.Duration {
	hours, minutes, _ := strings.Cut(text, ":")
	h, err := strconv.ParseUint(hours, 10, 8)
	m, err2 := strconv.ParseUint(minutes, 10, 8)
	if errors.Join(err, err2) != nil || len(hours) != 2 || len(minutes) != 2 || m > 59 || h > 24 || h == 24 && m > 0 {
		c.refuse(field, text, `a time of day in the form "HH:MM"`)
		return 0
	}
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
}

func dayOf(d Day) (time.Weekday, bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if day.String() == string(d) {
			return day, true
		}
	}
	return 0, false
}

// detectors reads the detectors: nil for the default ones, an empty list for none.
func (c *converter) detectors(detectors []Detector) []rollout.Detector {
	if detectors == nil {
		return nil
	}
	all := []rollout.Detector{}
	for i, d := range detectors {
		field := fmt.Sprintf("spec.detectors[%d]", i)
		switch {
		case d.CUSUM != nil && d.Failures == nil:
			all = append(all, c.cusum(field+".cusum", d.CUSUM))
		case d.Failures != nil && d.CUSUM == nil:
			f := rollout.Failures{At: d.Failures.At, Of: rollout.Denominator(d.Failures.Of), After: int(d.Failures.After)}
			if err := f.Validate(); err != nil {
				c.refuse(field+".failures", f.At.String(), err.Error())
			}
			all = append(all, f)
		default:
			c.refuse(field, "neither or both", "exactly one of cusum and failures")
		}
	}
	return all
}

func (c *converter) cusum(field string, d *CUSUM) rollout.CUSUM {
	out := rollout.CUSUM{Good: c.share(field+".good", d.Good), Bad: c.share(field+".bad", d.Bad)}
	if d.Limit != "" {
		limit, err := strconv.ParseFloat(d.Limit, 64)
		if err != nil || !(limit > 0) {
			c.refuse(field+".limit", d.Limit, "a number above 0")
		}
		out.Limit = limit
	}
	if err := out.Validate(); err != nil {
		c.refuse(field, fmt.Sprintf("good %q, bad %q, limit %q", d.Good, d.Bad, d.Limit), err.Error())
	}
	return out
}

// share reads a percentage; an absent one is 0, which stands for the default.
func (c *converter) share(field, text string) float64 {
	if text == "" {
		return 0
	}
	digits, isPercent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(digits, 64)
	if !isPercent || err != nil || !(n > 0 && n <= 100) {
		c.refuse(field, text, "a percentage above 0% and up to 100%")
	}
	return n / 100
}

// targets are the revisions that a spec names.
func (s *RolloutSpec) targets() RolloutTargets {
	t := RolloutTargets{Revision: s.Revision}
	for _, g := range s.Groups {
		if g.Revision != nil {
			t.Groups = append(t.Groups, GroupRevision{Name: g.Name, Revision: *g.Revision})
		}
	}
	return t
}

// of is the own revision of a group, or nil.
func (t *RolloutTargets) of(group string) *PinnedRevision {
	for i := range t.Groups {
		if t.Groups[i].Name == group {
			return &t.Groups[i].Revision
		}
	}
	return nil
}

// is reports whether they are the same revisions for the same groups, in any order.
func (t *RolloutTargets) is(other RolloutTargets) bool {
	differs := func(g GroupRevision) bool {
		own := other.of(g.Name)
		return own == nil || *own != g.Revision
	}
	return t.Revision == other.Revision && len(t.Groups) == len(other.Groups) && !slices.ContainsFunc(t.Groups, differs)
}

// wayBack is the plan by which an entry of the history is followed; nil if it is that of the rollout, or none is followed.
func (r *Rollout) wayBack() *RollbackPlan {
	if r.rollback() == nil {
		return nil
	}
	return r.Spec.Rollback
}

// rollback is what somebody has gone back to, if the spec has said the same ever since.
func (r *Rollout) rollback() *RollbackStatus {
	if b := r.Status.Rollback; b != nil && b.Over.is(r.Spec.targets()) {
		return b
	}
	return nil
}
