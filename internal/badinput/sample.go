// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package badinput

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// maxDepth bounds samples of types that hold themselves.
const maxDepth = 6

func contextType() reflect.Type { return reflect.TypeFor[context.Context]() }

func errorType() reflect.Type { return reflect.TypeFor[error]() }

// MakeSample returns a usable value of type T.
func MakeSample[T any](s *Scope) T {
	var value T
	reflect.ValueOf(&value).Elem().Set(s.makeSample(reflect.TypeFor[T](), 0))
	return value
}

// SetAnswer sets the results of a stub's method.
func SetAnswer(s *Scope, results ...any) {
	types := make([]reflect.Type, len(results))
	for i, r := range results {
		types[i] = reflect.TypeOf(r).Elem()
	}
	for i, v := range s.makeAnswer(types) {
		reflect.ValueOf(results[i]).Elem().Set(v)
	}
}

// makeAnswer returns the results of a stub.
func (s *Scope) makeAnswer(types []reflect.Type) []reflect.Value {
	stubError := errStub
	fails := len(types) > 0 && types[len(types)-1] == errorType()
	values := make([]reflect.Value, len(types))
	for i, t := range types {
		switch {
		case t == errorType() && s.answers == Failing:
			values[i] = reflect.ValueOf(&stubError).Elem()
		case t == errorType(), s.answers == Empty, fails && s.answers == Failing:
			values[i] = reflect.Zero(t)
		default:
			values[i] = s.makeSample(t, 0)
		}
	}
	return values
}

// makeSample returns a usable value of a type: the suite's own, a stub, what a constructor of the type makes, or one
// that is filled by its kind. If there is none, the scope notes it. depth counts the types that hold this one.
func (s *Scope) makeSample(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	if t == contextType() {
		v.Set(reflect.ValueOf(s.Context))
		return v
	}
	for _, known := range []map[reflect.Type]func(*Scope) any{s.suite.Samples, s.suite.Table.Stubs} {
		if f, ok := known[t]; ok {
			v.Set(reflect.ValueOf(f(s)))
			return v
		}
	}
	if f, ok := s.suite.constructorOf(t); ok {
		return s.callConstructor(t, f)
	}
	if depth > maxDepth {
		return v
	}
	s.fillKind(v, depth+1)
	return v
}

// callConstructor calls the constructor of a type with samples.
func (s *Scope) callConstructor(t reflect.Type, f Func) reflect.Value {
	fn := reflect.ValueOf(f.Fn)
	results := fn.Call(s.sampleArgs(fn.Type(), nil))
	if err := errorOf(results); err != nil {
		s.noteMissing(t, fmt.Sprintf("%s with samples: %v", f.Name, err))
	}
	return results[0]
}

// sampleArgs returns samples of a function's parameters. A variadic one has none. given replaces some.
func (s *Scope) sampleArgs(f reflect.Type, given map[int]reflect.Value) []reflect.Value {
	var args []reflect.Value
	for i := range f.NumIn() {
		switch v, ok := given[i]; {
		case ok && !(f.IsVariadic() && i == f.NumIn()-1):
			args = append(args, v)
		case f.IsVariadic() && i == f.NumIn()-1:
			if ok {
				args = append(args, reflect.Zero(f.In(i).Elem()))
			}
		default:
			args = append(args, s.makeSample(f.In(i), 0))
		}
	}
	return args
}

// fillKind fills a value by its kind.
func (s *Scope) fillKind(v reflect.Value, depth int) {
	t := v.Type()
	switch t.Kind() {
	case reflect.String:
		v.SetString("a")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
		if t == reflect.TypeFor[time.Duration]() {
			v.SetInt(int64(time.Second))
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	case reflect.Func:
		v.Set(reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value { return s.makeAnswer(resultsOf(t)) }))
	case reflect.Interface:
		s.fillInterface(v)
	default:
		s.fillHolder(v, depth)
	}
}

// fillHolder fills a value that holds others.
func (s *Scope) fillHolder(v reflect.Value, depth int) {
	t := v.Type()
	switch t.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(s.makeSample(t.Elem(), depth))
	case reflect.Slice:
		v.Set(reflect.Append(v, s.makeSample(t.Elem(), depth)))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(s.makeSample(t.Key(), depth), s.makeSample(t.Elem(), depth))
	case reflect.Chan:
		v.Set(reflect.MakeChan(reflect.ChanOf(reflect.BothDir, t.Elem()), 1).Convert(t))
	case reflect.Struct:
		s.fillStruct(v, depth)
	}
}

// fillStruct fills the fields of the library's own structs. Structs of others stay zero.
func (s *Scope) fillStruct(v reflect.Value, depth int) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(1_700_000_000, 0)))
		return
	}
	if !s.suite.isOwn(v.Type()) {
		return
	}
	for i := range v.NumField() {
		if v.Field(i).CanSet() {
			v.Field(i).Set(s.makeSample(v.Field(i).Type(), depth))
		}
	}
}

func (s *Scope) fillInterface(v reflect.Value) {
	switch {
	case v.Type() == errorType():
		v.Set(reflect.ValueOf(errStub))
	case v.NumMethod() == 0:
		v.Set(reflect.ValueOf("a"))
	default:
		s.noteMissing(v.Type(), "it is neither in the samples nor among the stubs")
	}
}

func (s *Suite) isOwn(t reflect.Type) bool { return strings.HasPrefix(t.PkgPath(), s.Module) }

func resultsOf(f reflect.Type) []reflect.Type {
	types := make([]reflect.Type, f.NumOut())
	for i := range types {
		types[i] = f.Out(i)
	}
	return types
}

// errorOf returns the error among results, which is the last of them.
func errorOf(results []reflect.Value) error {
	if len(results) == 0 {
		return nil
	}
	err, _ := results[len(results)-1].Interface().(error)
	return err
}
