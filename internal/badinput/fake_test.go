// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package badinput_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/badinput"
	"github.com/belayproject/belay/internal/option"
)

// A broken is a type whose methods have one fault each. It is made by newBroken.
type broken struct{ made bool }

func newBroken() *broken { return &broken{made: true} }

// PanicNow dereferences a nil pointer of a receiver that was not made.
func (b *broken) PanicNow() {
	if !b.made {
		panic("not made")
	}
}

// Run ends with its context, but the second call waits for the first.
func (b *broken) Run(ctx context.Context) error {
	if !b.made {
		return option.NotMade("broken.Run", "newBroken")
	}
	b.made = false
	<-ctx.Done()
	return nil
}

func panicsNow(now func() time.Time) time.Time { return now() }

func hangsOnNil(changed func()) error {
	if changed == nil {
		select {}
	}
	return nil
}

func leaksOnNil(changed func()) error {
	if changed == nil {
		go func() { select {} }()
		return option.CheckRequired("leaks", "changed", changed, "")
	}
	return nil
}

func panicsLater(changed func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		changed()
	}()
	<-done
	return option.CheckRequired("panicsLater", "changed", changed, "")
}

func returnsNothing(*broken) error { return nil }

func returnsUntyped(b *broken) error {
	if b == nil {
		return context.Canceled
	}
	return nil
}

func returnsPanicking(b *broken) func() bool { return func() bool { return b.made } }

func takesAll(b *broken, changed func()) error {
	check := option.For("takesAll", nil)
	check.Require("b", b, "see newBroken")
	check.Require("changed", changed, "")
	return check.Err()
}

// fakeSuite has a function or method for each fault that a call can have, and one that has none.
func fakeSuite() *badinput.Suite {
	one := func(name string, f any, params ...string) badinput.Func {
		return badinput.Func{Name: "fake." + name, Fn: f, Params: params}
	}
	return &badinput.Suite{
		Module: "github.com/belayproject/belay", Patience: 300 * time.Millisecond,
		Table: badinput.Table{
			Funcs: []badinput.Func{
				one("newBroken", newBroken), one("panics", panicsNow, "now"),
				one("hangs", hangsOnNil, "changed"), one("leaks", leaksOnNil, "changed"),
				one("panicsLater", panicsLater, "changed"), one("returnsNothing", returnsNothing, "b"),
				one("returnsUntyped", returnsUntyped, "b"), one("returnsPanicking", returnsPanicking, "b"),
				one("takesAll", takesAll, "b", "changed"),
			},
			Types: []badinput.Type{{
				Name: "fake.broken", Type: reflect.TypeFor[broken](), Methods: map[string][]string{"PanicNow": nil, "Run": {"ctx"}},
			}},
		},
	}
}

// TestFaultsAreReported shows what the suite says of each fault, and that it goes on after the process has ended or
// hangs.
func TestFaultsAreReported(t *testing.T) {
	made, faults, err := fakeSuite().RunIsolated(t.Context(), "fake", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{
		"fake.panics: nil now":                "panics: runtime error: invalid memory address",
		"fake.panics: zero":                   "panics: runtime error: invalid memory address",
		"fake.hangs: nil changed":             "hangs:",
		"fake.leaks: nil changed":             "leaves goroutines:",
		"fake.panicsLater: nil changed":       "ends the process:\npanic: runtime error: invalid memory address",
		"fake.returnsNothing: nil b":          "returns no error",
		"fake.returnsUntyped: nil b":          "returns an error that is no option.Error: *errors.errorString",
		"fake.returnsPanicking: nil b":        "the function that it returns panics: runtime error: invalid memory address",
		"fake.broken.PanicNow: zero receiver": "panics: not made",
	} {
		i := slices.IndexFunc(faults, func(f badinput.Fault) bool { return f.Call == call })
		if i < 0 || !strings.HasPrefix(faults[i].Text, want) {
			t.Errorf("%s: got the faults %v, want %q", call, faults, want)
		}
	}
	for _, f := range faults {
		if strings.HasPrefix(f.Call, "fake.takesAll") || strings.HasSuffix(f.Call, ": samples") {
			t.Errorf("%s has no fault, got %s", f.Call, f.Text)
		}
	}
	if names := fakeSuite().CallNames("fake"); made != len(names) {
		t.Errorf("made %d calls, want %d", made, len(names))
	}
}
