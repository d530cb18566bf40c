// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	configv1alpha1 "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// A filler sets fields to values that are not there twice.
type filler struct {
	t *testing.T
	n int
	// some sets only some of them. Nil sets all.
	some *rand.Rand
}

const sourceJSON = `{"configMapRef":{"namespace":"a","name":"b%d","uid":"c"}}`

func (f *filler) fill(v reflect.Value) {
	f.t.Helper()
	if f.some != nil && f.some.IntN(3) == 0 {
		return
	}
	f.n++
	if f.known(v) {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", f.n))
	case reflect.Int64, reflect.Int32, reflect.Int:
		v.SetInt(int64(f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range 2 {
			value := reflect.New(v.Type().Elem()).Elem()
			f.fill(value)
			v.SetMapIndex(reflect.ValueOf(fmt.Sprintf("key-%d", i)).Convert(v.Type().Key()), value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f.field(v, i)
		}
	default:
		f.t.Fatalf("don't know how to fill a %s", v.Type())
	}
}

// field fills one field of a struct; two of them hold JSON.
func (f *filler) field(v reflect.Value, i int) {
	f.n++
	switch name := v.Type().Field(i).Name; {
	case name == "Config" && v.Field(i).Type() == reflect.TypeFor[[]byte]():
		v.Field(i).SetBytes(fmt.Appendf(nil, `{"z":%d,"a":{"b":[1.5,"é"]}}`, f.n))
	case name == "ConfigSource" && v.Field(i).Type() == reflect.TypeFor[[]byte]():
		v.Field(i).SetBytes(fmt.Appendf(nil, sourceJSON, f.n))
	default:
		f.fill(v.Field(i))
	}
}

// known fills types that have a form of their own. Times are to the second, as they are stored.
func (f *filler) known(v reflect.Value) bool {
	at := time.Unix(int64(1e9+f.n), 0).UTC()
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = at
	case *metav1.Time:
		*p = metav1.NewTime(at)
	case *runtime.RawExtension:
		p.Raw = fmt.Appendf(nil, `{"n":%d}`, f.n)
	case *configv1alpha1.NodeConfigSource:
		if err := json.Unmarshal(fmt.Appendf(nil, sourceJSON, f.n), p); err != nil {
			f.t.Fatal(err)
		}
	case *machine.Amount:
		*p = machine.Amount{Value: 1 + f.n%100, Percent: f.n%2 == 0}
	case *v1alpha1.LabelOperator:
		*p = "In"
	case *intstr.IntOrString:
		*p = intstr.FromString(fmt.Sprintf("%d%%", 1+f.n%100))
	default:
		return false
	}
	return true
}

// each calls check for a value with all fields set, for one with none, for one with each field alone, and for many with some of them.
func each[T any](t *testing.T, check func(v T)) {
	t.Helper()
	check(*new(T))
	var all T
	f := &filler{t: t}
	f.fill(reflect.ValueOf(&all).Elem())
	check(all)
	for i := range reflect.TypeFor[T]().NumField() {
		var one T
		f.field(reflect.ValueOf(&one).Elem(), i)
		check(one)
	}
	for seed := range uint64(300) {
		var some T
		f.some = rand.New(rand.NewPCG(seed, 1))
		f.fill(reflect.ValueOf(&some).Elem())
		check(some)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// stored is what a value is after it was written and read.
func stored[T any](t *testing.T, v T) (back T) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return back
}
