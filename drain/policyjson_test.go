// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/drain"
)

// filled sets every field of a value to something: lists have one element, pointers point.
func filled(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(planStart()))
			return
		}
		for i := range v.NumField() {
			filled(v.Field(i))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Func: // has no JSON, and is never equal to another
	default:
		v.SetInt(90)
	}
}

// shared names what two values have in common: memory that a change of one would change in the other.
func shared(path string, a, b reflect.Value) (out []string) {
	switch a.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if a.Pointer() == b.Pointer() {
			return []string{path}
		}
		if a.Kind() == reflect.Pointer {
			return shared(path, a.Elem(), b.Elem())
		}
		for i := 0; a.Kind() == reflect.Slice && i < a.Len(); i++ {
			out = append(out, shared(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))...)
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if a.Type() != reflect.TypeFor[time.Time]() {
				out = append(out, shared(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))...)
			}
		}
	}
	return out
}

// copies fails the test unless a copy of v, with every field set, is equal and shares nothing.
func copies[T any](t *testing.T, deepCopy func(*T) *T) {
	t.Helper()
	var v, zero T
	filled(reflect.ValueOf(&v).Elem())
	c := deepCopy(&v)
	if !reflect.DeepEqual(*c, v) {
		t.Errorf("copy: got %+v, want %+v", *c, v)
	}
	if both := shared(reflect.TypeFor[T]().Name(), reflect.ValueOf(&v).Elem(), reflect.ValueOf(c).Elem()); len(both) > 0 {
		t.Errorf("copy: got %q shared, want nothing", both)
	}
	if c := deepCopy(&zero); !reflect.DeepEqual(*c, zero) {
		t.Errorf("copy of nothing: got %+v", *c)
	}
	if c := deepCopy(nil); c != nil {
		t.Errorf("copy of nil: got %+v", *c)
	}
}

// R-DR-13: policy and status are data that callers keep in resources of their own, whose copies share nothing.
func TestCopiesShareNothing(t *testing.T) {
	copies(t, (*drain.Policy).DeepCopy)
	copies(t, (*drain.Status).DeepCopy)
	copies(t, (*drain.SetStatus).DeepCopy)
}

// R-DR-13: a policy comes back from JSON as it was, with each duration as a string.
func TestPolicyInJSONHasDurationsAsStrings(t *testing.T) {
	var want, got drain.Policy
	filled(reflect.ValueOf(&want).Elem())
	text, err := json.Marshal(want)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
	}
	if n := strings.Count(string(text), `"90ns"`); n != 6 {
		t.Errorf("got %s with %d durations as strings, want 6", text, n)
	}
	if text, err := json.Marshal(drain.Policy{}); err != nil || string(text) != "{}" {
		t.Errorf("the zero policy: got %s, %v, want {}", text, err)
	}
	read := `{"settle":"0s","soak":null,"tierDeadline":"1h30m","escalation":[{"after":"10m","step":"Delete"}],"rules":[{"name":"a","deadline":"2h","later":1}],"later":1}`
	got, settle := drain.Policy{}, time.Duration(0)
	want = drain.Policy{Settle: &settle, TierDeadline: 90 * time.Minute, Escalation: []drain.Escalation{{After: 10 * time.Minute, Step: drain.StepDelete}},
		Rules: []drain.Rule{{Name: "a", Deadline: 2 * time.Hour}}}
	if err := json.Unmarshal([]byte(read), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, %v, want %+v", read, got, err, want)
	}
	for _, bad := range []string{`{"settle":5}`, `{"soak":"soon"}`, `{"rules":[{"deadline":""}]}`, `{"escalation":[{"after":1.5}]}`, `{"volumeDeadline":true}`} {
		if err := json.Unmarshal([]byte(bad), &got); err == nil || !strings.Contains(err.Error(), `is no duration, want a string such as "30s"`) {
			t.Errorf("%s: got %v, want an error that says what is right", bad, err)
		}
	}
}
