// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// C-07: what is asked before a process relies on being started again.
func TestPolicySaysWhoComesBack(t *testing.T) {
	for _, c := range []struct {
		p      Policy
		status int
		want   string // part of the error; empty: it comes back
	}{
		{Policy{Restart: "always"}, 0, ""},
		{Policy{Restart: "always"}, 1, ""},
		{Policy{Restart: "on-failure"}, 0, `after exit status 0 systemd leaves the unit down: it is clean, and Restart=on-failure; use Restart=always`},
		{Policy{Restart: "on-failure"}, 75, ""},
		{Policy{Restart: "on-failure", Clean: []int{75}}, 75, "it is clean"},
		{Policy{Restart: "on-failure", Force: []int{0}}, 0, ""},
		{Policy{Restart: "on-success"}, 0, ""},
		{Policy{Restart: "on-success", Clean: []int{75}}, 75, ""},
		{Policy{Restart: "on-success"}, 1, "Restart=on-success; use Restart=always"},
		{Policy{Restart: "on-abnormal"}, 1, "Restart=on-abnormal"},
		{Policy{Restart: "no"}, 0, "Restart=no"},
		{Policy{Restart: "always", Prevent: []int{75}}, 75, "RestartPreventExitStatus has it"},
	} {
		err := c.p.After(c.status)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrStaysDown) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v after %d: %v, want %q", c.p, c.status, err, c.want)
		}
	}
}

// C-07: a limit of starts that a crash loop reaches keeps the node down before its config is left.
func TestPolicyFindsTheStartLimit(t *testing.T) {
	for _, c := range []struct {
		p       Policy
		endless bool
	}{
		{Policy{Burst: 5, Interval: 10 * time.Second, Delay: 100 * time.Millisecond}, false},
		{Policy{Burst: 5, Interval: 10 * time.Second, Delay: 2 * time.Second}, true},
		{Policy{Burst: 5, Delay: time.Second}, true},
		{Policy{Interval: 10 * time.Second}, true},
		{Policy{Burst: 5, Interval: 10 * time.Second, Delay: 1<<63 - 1}, true},
	} {
		if err := c.p.Endless(); (err == nil) != c.endless || err != nil && !errors.Is(err, ErrStaysDown) {
			t.Errorf("%+v: %v, want endless: %t", c.p, err, c.endless)
		}
	}
}

// Properties come as D-Bus has them, and whatever else somebody sends.
func TestPolicyOfProperties(t *testing.T) {
	got := policyOf("u.service", map[string]any{
		"Restart": "on-failure", "RestartUSec": uint64(100000), "StartLimitBurst": uint32(5), "StartLimitIntervalUSec": ^uint64(0),
		"SuccessExitStatus": []any{[]int32{3, 4}, []int32{15}}, "RestartForceExitStatus": []any{[]int32{}, []int32{}},
		"RestartPreventExitStatus": "odd",
	})
	want := Policy{Unit: "u.service", Restart: "on-failure", Clean: []int{3, 4}, Delay: 100 * time.Millisecond, Burst: 5, Interval: 1<<63 - 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
}
