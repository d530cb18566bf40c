// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// R-DR-13: order and treatment are data.
func TestPolicyFileIsReadWhole(t *testing.T) {
	got, err := LoadPolicy(filepath.Join("testdata", "policy.yaml"))
	from := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	want := drain.Policy{
		Rules: []drain.Rule{
			{Name: "databases last", OwnerKinds: []string{"StatefulSet"}, Namespaces: []string{"data"}, Tier: 10},
			{
				Name: "let batch end", Behavior: drain.BehaviorWaitCompleted, Deadline: 2 * time.Hour,
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"kind": "batch"}}, MaxPriority: ptr.To[int32](0),
			},
		},
		LocalData: drain.EvictPods, TierDeadline: 15 * time.Minute, Settle: ptr.To(10 * time.Second),
		Escalation:     []drain.Escalation{{After: 30 * time.Minute, Step: drain.StepDelete, GracePeriodSeconds: ptr.To[int64](30)}},
		Windows:        []drain.Window{{From: from, Until: from.Add(6 * time.Hour)}},
		RequireHealthy: true,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestABadPolicyFileSaysWhereItIsWrong(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "is empty"},
		{"[]", "the document: must have fields"},
		{"localdata: Evict", "localdata: is not known; known are daemonSets, deleteFinished"},
		{"settle: 5", "settle: is 5: must be a duration, such as 30s or 10m"},
		{"settle: soon", "settle: is soon: must be a duration"},
		{"settle: -5s", "settle: is -5s: must be a duration"},
		{"rules: [{name: a}, {name: b, tiers: 1}]", "rules[1].tiers: is not known"},
		{"rules: {name: a}", "rules: must be a list"},
		{"rules: [{name: a, selector: {matchLabel: {a: b}}}]", "rules[0].selector.matchLabel: is not known"},
		{"rules: [{name: a, tier: high}]", "tier"},
		{"volumes: true\nvolumes: false", `key "volumes" already set`},
		{"escalation: [{after: 1h, step: OutOfService}]", `escalation[0].step: is "OutOfService": the only step that this command can take is Delete`},
		{"windows: [{from: tonight}]", "tonight"},
		{"localData: evict", `localData is "evict", want "Block" or "Evict"`},
		{"escalation: [{after: 2h, step: Delete}, {after: 1h, step: Delete}]", "escalation[1].after is 1h0m0s, want more than"},
		{"a: b: c", "mapping values"},
		{"volumes: true\nsettle: 1\nsoak: 2", "soak: is 2"},
	} {
		if got, err := LoadPolicy(write(t, c.text)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "policy.yaml") {
			t.Errorf("%q: got %+v and %v, want an error with %q and the file", c.text, got, err, c.want)
		}
	}
	if _, err := LoadPolicy("/absent/policy.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that isn't there: got %v, want %v", err, fs.ErrNotExist)
	}
	if _, err := LoadPolicy(write(t, "# "+strings.Repeat("x", maxPolicy))); err == nil || !strings.Contains(err.Error(), "has more than 1048576 bytes") {
		t.Errorf("a huge file: got %v, want an error with the limit", err)
	}
}
