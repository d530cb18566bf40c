// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/machine/provider"
)

// twoMethods can create and delete, and no more.
type twoMethods struct{ memory *Memory }

func (p twoMethods) Create(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
	return p.memory.Create(ctx, r)
}

func (p twoMethods) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	return p.memory.Delete(ctx, r)
}

// R-MA-09: a provider that can only create and delete passes, and the report names what it lacks.
func TestMinimalProviderPasses(t *testing.T) {
	m := new(Memory)
	report := check(t, m.harness(provider.Minimal(twoMethods{m})))
	if failed := report.Of(Failed); len(failed) > 0 {
		t.Errorf("got failures %v, want none", failed)
	}
	want := []string{"Get", "List", "Planner", "Updater", "Validator", "Power", "Adopter", "Capacity", "Console", "Group"}
	if !slices.Equal(report.Lacks, want) {
		t.Errorf("got Lacks %q, want %q", report.Lacks, want)
	}
	skipped := map[string]string{}
	for _, r := range report.Of(Skipped) {
		skipped[r.Name] = r.Why
	}
	for rule, lack := range map[string]string{
		"GetOfUnknownIsNotFound": "Get", "ListReturnsMany": "List", "PlanHasNoEffect": "Planner", "UpdateKeepsIdentity": "Updater",
		"ValidateAgreesWithCreate": "Validator", "StopIsIdempotent": "Power", "AdoptBringsDisksBack": "Adopter", "ConsoleIsBounded": "Console",
	} {
		if skipped[rule] != "the provider has no "+lack {
			t.Errorf("rule %s: got skipped because %q, want that the provider has no %s", rule, skipped[rule], lack)
		}
	}
	if passed := len(report.Of(Passed)); passed < 30 {
		t.Errorf("%d rules passed, want at least 30:\n%s", passed, report)
	}
}

// A harness that has only what is required still checks, and what it lacks is named: a rule that is skipped, or a part of one.
func TestSparseHarness(t *testing.T) {
	full := new(Memory).Harness()
	report := check(t, Harness{New: full.New, Config: []byte(`{}`), Inventory: full.Inventory, Many: -1, Forgets: "it is small"})
	if failed := report.Of(Failed); len(failed) > 0 {
		t.Errorf("got failures %v, want none", failed)
	}
	unchecked := 0
	for _, r := range report.Results {
		unchecked += len(r.Unchecked)
		if r.Outcome == Skipped && r.Why == "" {
			t.Errorf("rule %s is skipped without a reason", r.Name)
		}
	}
	if unchecked == 0 {
		t.Error("no part of a rule is named as unchecked")
	}
	text := report.String()
	for _, want := range []string{
		"the harness has no OtherConfig", "the harness has no Zones", "the harness has no Running", "the harness has no Boots", "the harness has no Crash",
		"the harness has no Inject", "the harness has no Many", "the harness has no WriteSentinel and ReadSentinel", "used up: it is small",
		"unchecked: whether it still runs: the harness has no Running",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
}

// A fault that the harness can't inject is named.
func TestFaultsThatCannotBe(t *testing.T) {
	h := new(Memory).Harness()
	inject := h.Inject
	h.Inject = func(f Fault) func() {
		if f == StaleList {
			return nil
		}
		return inject(f)
	}
	for _, r := range check(t, h).Results {
		stale := strings.HasPrefix(r.Name, "StaleList")
		if stale && (r.Outcome != Skipped || r.Why != "the harness can't inject StaleList") || !stale && r.Outcome != Passed {
			t.Errorf("got %v", r)
		}
	}
}

// A harness that can't do its part is an error, and no report.
func TestBadHarness(t *testing.T) {
	broken := errors.New("no backend")
	full := new(Memory).Harness()
	for name, h := range map[string]Harness{
		"nothing":   {},
		"no config": {New: full.New, Inventory: full.Inventory},
		"no client": {New: func(context.Context) (provider.Provider, error) { return nil, broken }, Config: full.Config, Inventory: full.Inventory},
		"no inventory": {New: full.New, Config: full.Config,
			Inventory: func(context.Context) (Inventory, error) { return Inventory{}, broken }},
	} {
		if _, err := Check(t.Context(), h); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
}

// A harness that lets nothing crash, or everything for ever, fails the rules about crashes: they would show nothing.
func TestCrashesHaveToHappen(t *testing.T) {
	for name, c := range map[string]struct {
		died bool
		want string
	}{
		"never":  {false, "the harness has let no process die"},
		"always": {true, "more than 100 points"},
	} {
		h := new(Memory).Harness()
		h.Crash = func(context.Context, Call, int) (bool, error) { return c.died, nil }
		var crashes []Result
		for _, r := range check(t, h).Of(Failed) {
			if strings.Contains(r.Why, c.want) {
				crashes = append(crashes, r)
			}
		}
		if len(crashes) != len(crashRules()) {
			t.Errorf("%s: got %d failures that say %q, want %d", name, len(crashes), c.want, len(crashRules()))
		}
	}
}

// What is left of rules that were cut short does not disturb the others, and a suite whose ctx ends says so for each rule that is left.
func TestEndedSuite(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBroken()
	b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
		i, err := b.Memory.Create(ctx, r)
		if b.Calls()["Create"] == 10 {
			cancel()
		}
		return i, err
	}
	report, err := Check(ctx, b.harness(b))
	if err != nil || len(report.Results) != len(Rules()) {
		t.Fatalf("got %d results, error %v, want %d", len(report.Results), err, len(Rules()))
	}
	if failed := report.Of(Failed); len(failed) < 60 || !strings.Contains(failed[len(failed)-1].Why, context.Canceled.Error()) {
		t.Errorf("got %d failures, want one for each rule after the end of ctx, which says so:\n%s", len(failed), report)
	}
	if got := b.Instances(); len(got) != 0 {
		t.Errorf("got %d instances left, want none", len(got))
	}
}

// A provider that panics fails the rule, and not the process.
func TestPanicIsAFailure(t *testing.T) {
	b := newBroken()
	b.console = func(context.Context, provider.Ref, int) ([]byte, error) { panic("out of range") }
	report := check(t, b.harness(b))
	if failed := report.Of(Failed); len(failed) != 2 || !strings.HasPrefix(failed[0].Why, "panic: out of range") {
		t.Errorf("got %v, want the two rules that call Console", failed)
	}
}

// check runs the suite in a bubble: what waits takes no time.
func check(t *testing.T, h Harness) (report Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if report, err = Check(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	})
	return report
}

// Names of rules stay unique and their texts say something: reports are compared over time.
func TestRulesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.Name] || r.Text == "" || strings.ContainsAny(r.Name, " /") {
			t.Errorf("rule %q: %q has no name of its own, or no text", r.Name, r.Text)
		}
		seen[r.Name] = true
	}
}

// Run writes the report as JSON.
func TestReportIsWritten(t *testing.T) {
	h := new(Memory).Harness()
	h.Report = filepath.Join(t.TempDir(), "report.json")
	t.Run("suite", func(t *testing.T) { Run(t, h) })
	data, err := os.ReadFile(h.Report)
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Provider != "memory" || len(got.Results) != len(Rules()) || got.Results[0].Rule != Rules()[0] || got.Results[0].Outcome != Passed || got.Began.IsZero() {
		t.Errorf("got %+v, want the results of %d rules of provider memory", got, len(Rules()))
	}
	if err := got.Write(filepath.Join(h.Report, "below")); err == nil {
		t.Error("Write below a file: got no error, want one")
	}
}

const asChild = "MACHINETEST_CHILD"

// TestAsChild is the test of a provider as others write it, for TestRunFails.
func TestAsChild(t *testing.T) {
	b := newBroken()
	h := b.harness(b)
	h.Many = 50
	switch os.Getenv(asChild) {
	case "broken":
		notIdempotent(b)
	case "skips more":
		h.Boots, h.Skips = nil, []string{}
	case "skips less":
		h.Skips = []string{"CreateIsIdempotent"}
	case "skips":
		h.Boots, h.Skips = nil, []string{"RebootOncePerID"}
	}
	Run(t, h)
}

// Run fails its test for a broken provider, one subtest a rule, and for rules that are skipped without having been said to be.
func TestRunFails(t *testing.T) {
	for how, want := range map[string]string{
		"broken":     "rule CreateIsIdempotent: a token makes one instance",
		"skips more": "rule RebootOncePerID: skipped: the harness has no Boots; it is not among the Skips",
		"skips less": "rule CreateIsIdempotent: passed; it is among the Skips",
		"skips":      "",
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAsChild$", "-test.v")
		cmd.Env = append(os.Environ(), asChild+"="+how)
		out, err := cmd.CombinedOutput()
		if failed := err != nil; failed != (want != "") {
			t.Errorf("%s: got error %v, want %t:\n%s", how, err, want != "", out)
		}
		rule, _, _ := strings.Cut(strings.TrimPrefix(want, "rule "), ":")
		if !strings.Contains(string(out), want) || want != "" && !strings.Contains(string(out), "--- FAIL: TestAsChild/"+rule) {
			t.Errorf("%s: the output does not say %q, as a failure of that rule:\n%s", how, want, out)
		}
	}
}
