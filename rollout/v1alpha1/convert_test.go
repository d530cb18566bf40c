// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"testing"

	"github.com/belayproject/belay/rollout/internal/model"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// fill sets everything in v to something that is not zero and not there twice, but for metadata.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", *n))
	case reflect.Int64, reflect.Int32, reflect.Int:
		v.SetInt(int64(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(t, v.Elem(), n)
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		}
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		value := reflect.New(v.Type().Elem()).Elem()
		fill(t, value, n)
		v.SetMapIndex(reflect.ValueOf("key"), value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	default:
		t.Fatalf("don't know how to fill a %s", v.Type())
	}
}

// eachField calls f for a value in which only one field is set, for each field, and for one in which all are.
func eachField[T any](t *testing.T, f func(v T)) {
	t.Helper()
	var all T
	n := 0
	for i := range reflect.TypeFor[T]().NumField() {
		var one T
		fill(t, reflect.ValueOf(&one).Elem().Field(i), &n)
		f(one)
		fill(t, reflect.ValueOf(&all).Elem().Field(i), &n)
	}
	f(all)
	f(*new(T))
}

// stored is what a value is after it was written and read.
func stored[T any](t *testing.T, v T) (back T) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// Nothing that the protocol says gets lost in the API, and nothing beside it is touched.
func TestConversionsLoseNothing(t *testing.T) {
	eachField(t, func(want protocol.Orders) {
		spec := v1alpha1.NodeShadowSpec{NodeUID: "u", Grant: 99, Stage: &v1alpha1.RevisionRef{Name: "old"}}
		spec.SetOrders(want)
		if got := v1alpha1.OrdersOf(stored(t, spec)); got != want || spec.NodeUID != "u" {
			t.Errorf("orders: got %+v of UID %q, want %+v", got, spec.NodeUID, want)
		}
	})
	eachField(t, func(want protocol.Report) {
		status := v1alpha1.NodeShadowStatus{Reason: "r", Attempt: 99}
		status.SetReport(want)
		if got := v1alpha1.ReportOf(stored(t, status)); got != want || status.Reason != "r" {
			t.Errorf("report: got %+v with reason %q, want %+v", got, status.Reason, want)
		}
	})
	ledger := func(want protocol.Ledger) {
		spec := v1alpha1.LedgerSpecOf(want)
		if got := v1alpha1.LedgerOf(stored(t, spec)); !reflect.DeepEqual(got, want) || int(spec.Count) != len(want.Slots) {
			t.Errorf("ledger: got %+v with count %d, want %+v", got, spec.Count, want)
		}
	}
	eachField(t, ledger)
	eachField(t, func(s protocol.Slot) { ledger(protocol.Ledger{Slots: []protocol.Slot{s}}) })
	eachField(t, func(c protocol.Closure) { ledger(protocol.Ledger{Closures: []protocol.Closure{c}}) })

	object := v1alpha1.NodeShadow{Spec: v1alpha1.NodeShadowSpec{NodeUID: "u", Grant: 4}, Status: v1alpha1.NodeShadowStatus{Known: true}}
	object.Name = "n"
	want := protocol.Shadow{Node: "n", UID: "u", Orders: protocol.Orders{Grant: 4}, Report: protocol.Report{Known: true}}
	if got := v1alpha1.ShadowOf(&object); got != want {
		t.Errorf("shadow: got %+v, want %+v", got, want)
	}
}

// The other way round: what stands in an object is what the protocol sees.
func TestNothingIsInvented(t *testing.T) {
	eachField(t, func(want v1alpha1.Slot) {
		s := v1alpha1.DisruptionLedgerSpec{Slots: []v1alpha1.Slot{want}}
		if got := v1alpha1.LedgerSpecOf(v1alpha1.LedgerOf(s)); !reflect.DeepEqual(got.Slots, s.Slots) {
			t.Errorf("got %+v, want %+v", got.Slots, s.Slots)
		}
	})
	eachField(t, func(want v1alpha1.NodeShadowSpec) {
		got := v1alpha1.NodeShadowSpec{NodeUID: want.NodeUID, Domain: want.Domain} // whose shadow it is: no order
		got.SetOrders(v1alpha1.OrdersOf(want))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// Every text that may stand in an order comes back as it was.
func TestReferences(t *testing.T) {
	for text, want := range map[string]v1alpha1.RevisionRef{
		"v2":              {Name: "v2"},
		"v2@sha256:22":    {Name: "v2", Digest: "sha256:22"},
		"v2@sha256:2@2":   {Name: "v2", Digest: "sha256:2@2"},
		"v2@":             {Name: "v2@"},
		"@sha256:22":      {Digest: "sha256:22"},
		"two words@x y":   {Name: "two words", Digest: "x y"},
		"registry/img:v1": {Name: "registry/img:v1"},
	} {
		got := v1alpha1.RefOf(text)
		if got == nil || *got != want || got.String() != text {
			t.Errorf("RefOf(%q) = %+v, in words %q, want %+v", text, got, got, want)
		}
	}
	if got := v1alpha1.RefOf(""); got != nil || got.String() != "" {
		t.Errorf("RefOf of nothing is %+v, want nil", got)
	}
}

// Phases and states that the protocol knows are those that the server accepts.
func TestPhasesAreThoseOfTheProtocol(t *testing.T) {
	if got, want := enumOf(t, v1alpha1.NodeShadowKind), phases(); !reflect.DeepEqual(got, want) {
		t.Errorf("the definition has the phases %v, the protocol %v", got, want)
	}
	form := regexp.MustCompile(propertyOf(schemaOf(t, v1alpha1.DisruptionLedgerKind), "slots").Items.Pattern)
	for _, state := range []protocol.SlotState{"", protocol.SlotSuspect, protocol.SlotBroken, protocol.SlotQuarantined} {
		line := v1alpha1.Slot{Node: "a", UID: "u", Attempt: 1, Rollout: "r", State: v1alpha1.SlotState(state)}.String()
		if !form.MatchString(line) {
			t.Errorf("the definition does not have the slot %q", line)
		}
	}
}

func phases() map[string]bool {
	all := map[string]bool{}
	for _, p := range model.AllPhases() {
		if p != "" {
			all[string(p)] = true
		}
	}
	return all
}
