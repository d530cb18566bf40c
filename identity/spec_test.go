// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/quick"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

// TestNameIsThatOfKEP1965 is R-ID-03. The first row is what a real kube-apiserver on a host "vm" calls its Lease; the others were computed
// apart from this package, in Python.
func TestNameIsThatOfKEP1965(t *testing.T) {
	for _, c := range []struct{ prefix, component, host, want string }{
		{"apiserver", "kube-apiserver", "vm", "apiserver-wlv32tlttr4jl3gtroqexyxapa"},
		{"x", "", "", "x-347wdgaevex5wqcxdew4ipoxja"},
		{"x", "c", "ab", "x-f7m63fbhvhhbgcfmpu3ddxvnpe"},
		{"x", "bc", "a", "x-rdowipwgxnmlz7uxbuhbi22shi"},
	} {
		if got := identity.Name(c.prefix, c.component, c.host); got != c.want {
			t.Errorf("R-ID-03: Name(%q, %q, %q) = %q, want %q", c.prefix, c.component, c.host, got, c.want)
		}
	}
}

// TestNamesAreEqualForEqualInputAlone is R-ID-03: equal inputs, and no others, have equal names, also around the border between
// host and component.
func TestNamesAreEqualForEqualInputAlone(t *testing.T) {
	same := func(c1, h1, c2, h2 string) bool {
		return (identity.Name("p", c1, h1) == identity.Name("p", c2, h2)) == (c1 == c2 && h1 == h2)
	}
	if err := quick.Check(same, nil); err != nil {
		t.Error(err)
	}
	shift := func(text string, a, b uint8) bool {
		i, j := int(a)%(len(text)+1), int(b)%(len(text)+1)
		return same(text[i:], text[:i], text[j:], text[:j])
	}
	if err := quick.Check(shift, nil); err != nil {
		t.Error(err)
	}
	long := strings.Repeat("h", math.MaxUint16)
	if identity.Name("p", "c", long) != identity.Name("p", "c", long+"x") {
		t.Error("more than the first 65,535 bytes of a host count")
	}
}

func TestNodeName(t *testing.T) {
	for want, got := range map[string]string{"agent-n1": identity.NodeName("agent", "n1"), "n1": identity.NodeName("", "n1")} {
		if got != want {
			t.Errorf("NodeName = %q, want %q", got, want)
		}
	}
}

// fields are the fields that an error complains of.
func fields(err error) []string {
	var names []string
	var many interface{ Errors() []error }
	if errors.As(err, &many) {
		for _, e := range many.Errors() {
			var one *field.Error
			if errors.As(e, &one) {
				names = append(names, one.Field)
			}
		}
	}
	return names
}

// TestTimingHasBounds is R-ID-08: what would break the promise is refused, and the error names the field, its value and what would be right.
func TestTimingHasBounds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*identity.Timing)
		field  string
		want   string
	}{
		"the presets":                     {func(*identity.Timing) {}, "", ""},
		"renew below a second":            {func(t *identity.Timing) { t.Renew = 999 * time.Millisecond }, "Timing.Renew", `"999ms": must be at least 1s`},
		"negative renew":                  {func(t *identity.Timing) { t.Renew = -time.Second }, "Timing.Renew", `"-1s": must be at least 1s`},
		"a negative jitter":               {func(t *identity.Timing) { t.Jitter = -0.1 }, "Timing.Jitter", `"-0.1": must be from 0 to 0.5`},
		"too much jitter":                 {func(t *identity.Timing) { t.Jitter = 0.51 }, "Timing.Jitter", `"0.51": must be from 0 to 0.5`},
		"a jitter that is no number":      {func(t *identity.Timing) { t.Jitter = math.NaN() }, "Timing.Jitter", "must be from 0 to 0.5"},
		"a hold of one renewal":           {func(t *identity.Timing) { t.Hold = 20800*time.Millisecond - 1 }, "Timing.Hold", "must be at least 2 × Renew × (1 + Jitter), 20.8s"},
		"a hold of two renewals":          {func(t *identity.Timing) { t.Hold = 20800 * time.Millisecond }, "", ""},
		"a hold of two late renewals":     {func(t *identity.Timing) { t.Jitter, t.Hold = 0.5, 20800*time.Millisecond }, "Timing.Hold", "must be at least 2 × Renew × (1 + Jitter), 30s"},
		"a renewal that never comes":      {func(t *identity.Timing) { t.Renew, t.Jitter = math.MaxInt64, 0.5 }, "Timing", "must be at least 3 × Renew"},
		"a hold of 0.9 of liveness":       {func(t *identity.Timing) { t.Hold = 36 * time.Second }, "", ""},
		"a hold of more":                  {func(t *identity.Timing) { t.Hold = 36*time.Second + 1 }, "Timing.Hold", `"36.000000001s": must be at most 0.9 × Liveness, 36s`},
		"liveness below the hold":         {func(t *identity.Timing) { t.Liveness = 20 * time.Second }, "Timing.Hold", "must be at most 0.9 × Liveness, 18s"},
		"a negative liveness":             {func(t *identity.Timing) { t.Liveness = -1 }, "Timing.Hold", "0.9 × Liveness"},
		"renew of a third of duration":    {func(t *identity.Timing) { t.Duration = 30 * time.Second }, "", ""},
		"renew of more than a third":      {func(t *identity.Timing) { t.Duration = 29 * time.Second }, "Timing.Duration", `"29s": must be at least 3 × Renew, 30s`},
		"a duration with a fraction":      {func(t *identity.Timing) { t.Duration = time.Hour + 1 }, "Timing.Duration", "must be whole seconds"},
		"a negative duration":             {func(t *identity.Timing) { t.Duration = -time.Hour }, "Timing.Duration", "must be at least 1s"},
		"a duration beyond the API field": {func(t *identity.Timing) { t.Duration = (math.MaxInt32 + 1) * time.Second }, "Timing.Duration", "must be at most 2147483647 s"},
		"a negative stop":                 {func(t *identity.Timing) { t.Stop = -1 }, "Timing.Stop", "must be more than 0"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := goodSpec("a")
			spec.Timing = identity.ControlPlane()
			c.change(&spec.Timing)
			checkRefused(t, spec, c.field, c.want)
		})
	}
}

// TestZeroTimingIsControlPlane is R-ID-08: every zero field has its default, and a field alone is judged with those of the others.
func TestZeroTimingIsControlPlane(t *testing.T) {
	spec := goodSpec("a")
	spec.Timing = identity.Timing{}
	checkRefused(t, spec, "", "")
	spec.Timing = identity.Timing{Renew: 16 * time.Second}
	checkRefused(t, spec, "Timing.Hold", `"30s": must be at least 2 × Renew × (1 + Jitter), 33.28s`)
	spec.Timing = identity.NodeAgent()
	checkRefused(t, spec, "", "")
}

func checkRefused(t *testing.T, spec identity.Spec, name, want string) {
	t.Helper()
	_, err := identity.New(identitytest.NewServer().Client("ns", "c", nil), spec, identity.Options{})
	if name == "" {
		if err != nil {
			t.Errorf("R-ID-08: refused with %v", err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), want) || fields(err)[0] != name && !strings.Contains(err.Error(), name) {
		t.Errorf("R-ID-08: got %v, want an error about %s that says %q", err, name, want)
	}
}

// TestSpecHasBounds is R-ID-08 for all other fields.
func TestSpecHasBounds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*identity.Spec)
		field  string
		want   string
	}{
		"good":                     {func(*identity.Spec) {}, "", ""},
		"no namespace":             {func(s *identity.Spec) { s.Namespace = "" }, "Namespace", "RFC 1123"},
		"a namespace with a slash": {func(s *identity.Spec) { s.Namespace = "a/b" }, "Namespace", `"a/b"`},
		"no name":                  {func(s *identity.Spec) { s.Name = "" }, "Name", "RFC 1123"},
		"a name of 254":            {func(s *identity.Spec) { s.Name = identity.NodeName("", strings.Repeat("n", 254)) }, "Name", "must be no more than 253"},
		"a name of 253":            {func(s *identity.Spec) { s.Name = identity.NodeName("", strings.Repeat("n", 253)) }, "", ""},
		"no component":             {func(s *identity.Spec) { s.Component = "" }, "Component", "belay-agent"},
		"a component with a space": {func(s *identity.Spec) { s.Component = "a b" }, "Component", `"a b"`},
		"no host":                  {func(s *identity.Spec) { s.Host = "" }, "Host", "Required"},
		"an endless host":          {func(s *identity.Spec) { s.Host = strings.Repeat("h", math.MaxUint16+1) }, "Host", "65535"},
		"no fingerprint":           {func(s *identity.Spec) { s.Fingerprint = identity.Fingerprint{MachineID: "m"} }, "Fingerprint", "BootID or its PodUID"},
		"a pod alone":              {func(s *identity.Spec) { s.Fingerprint = identity.Fingerprint{PodUID: "p"} }, "", ""},
		"nodes without a node":     {func(s *identity.Spec) { s.Nodes = nodes{}; s.Fingerprint.NodeUID = "u" }, "Node", "Required"},
		"nodes without a UID":      {func(s *identity.Spec) { s.Nodes = nodes{}; s.Node = "n" }, "Fingerprint.NodeUID", "Required"},
		"nodes without an owner": {func(s *identity.Spec) {
			s.Nodes, s.Node, s.Fingerprint.NodeUID = nodes{}, "n", "u"
		}, "Owner", "the Node with the UID of Fingerprint.NodeUID"},
		"nodes with another owner": {func(s *identity.Spec) {
			s.Nodes, s.Node, s.Fingerprint.NodeUID, s.Owner = nodes{}, "n", "u", &metav1.OwnerReference{Kind: "Node", Name: "n", UID: "u2"}
		}, "Owner", "the Node with the UID of Fingerprint.NodeUID"},
		"a relative lock file":      {func(s *identity.Spec) { s.LockFile = "m.lock" }, "LockFile", `"m.lock": must be an absolute path`},
		"an unknown policy":         {func(s *identity.Spec) { s.OnDuplicate = "Fight" }, "OnDuplicate", `"Fail", "Wait"`},
		"a label of ours":           {func(s *identity.Spec) { s.Labels = map[string]string{identity.ComponentLabel: "x"} }, "Labels[identity.belay.dev/component]", "written by the package"},
		"an annotation of ours":     {func(s *identity.Spec) { s.Annotations = map[string]string{identity.EpochAnnotation: "1"} }, "Annotations[identity.belay.dev/epoch]", "written by the package"},
		"a label that is no label":  {func(s *identity.Spec) { s.Labels = map[string]string{"a": "b c"} }, "Labels", "b c"},
		"an annotation key too bad": {func(s *identity.Spec) { s.Annotations = map[string]string{"a b": ""} }, "Annotations", "a b"},
		"two at once":               {func(s *identity.Spec) { s.Host = ""; s.Component = "" }, "Component", "Host"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := goodSpec("a")
			c.change(&spec)
			checkRefused(t, spec, c.field, c.want)
		})
	}
	if _, err := identity.New(nil, goodSpec("a"), identity.Options{}); err == nil {
		t.Error("a member without a client is made")
	}
}
