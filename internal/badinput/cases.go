// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package badinput

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A demand says which error a call has to return.
type demand int

const (
	anyResult   demand = iota // an error or none
	someError                 // an error of any kind
	optionError               // an error that names what is missing
)

// A call is one call of a table, with the values that it is given.
type call struct {
	name    string
	demand  demand
	answers Answers
	// make prepares the call in a scope. A call that is made twice at a time has two functions.
	make func(*Scope) []func() []reflect.Value
}

// A target is a function, or a method of a receiver, that calls are made for.
type target struct {
	name   string
	typ    reflect.Type // without the receiver
	params []string
	bind   func(*Scope) reflect.Value
}

// listCalls returns the calls of one package.
func (s *Suite) listCalls(pkg string) []call {
	var calls []call
	for _, f := range s.Table.Funcs {
		if packageOf(f.Name) == pkg {
			fn := reflect.ValueOf(f.Fn)
			calls = append(calls, s.listArgumentCalls(target{
				f.Name, fn.Type(), f.Params, func(*Scope) reflect.Value { return fn },
			}, true)...)
			calls = append(calls, listResultCalls(s, f)...)
		}
	}
	for _, t := range s.Table.Types {
		if packageOf(t.Name) == pkg {
			calls = append(calls, s.listMethodCalls(t)...)
		}
	}
	return calls
}

// packageOf cuts the package off a name: "drain/kube" of "drain/kube.NewCache".
func packageOf(name string) string {
	slash := strings.LastIndexByte(name, '/') + 1
	before, _, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + before
}

// listArgumentCalls returns the calls of a function with bad arguments.
func (s *Suite) listArgumentCalls(t target, isFunc bool) []call {
	var calls []call
	add := func(how string, d demand, given map[int]func(*Scope) reflect.Value) {
		calls = append(calls, call{t.name + ": " + how, d, Failing, func(sc *Scope) []func() []reflect.Value {
			values := map[int]reflect.Value{}
			for i, f := range given {
				values[i] = f(sc)
			}
			fn, args := t.bind(sc), sc.sampleArgs(t.typ, values)
			return []func() []reflect.Value{func() []reflect.Value { return fn.Call(args) }}
		}})
	}
	zero := map[int]func(*Scope) reflect.Value{}
	required := false
	for i := range t.typ.NumIn() {
		param := t.typ.In(i)
		if param == contextType() {
			continue
		}
		zero[i] = func(*Scope) reflect.Value { return reflect.Zero(param) }
		d := demandOfNil(t.typ, param)
		required = required || d == optionError
		if lastName(t.name) == "DeepCopyInto" {
			delete(zero, i) // writes to its argument, as that of every Kubernetes API type
			continue
		}
		if canBeNil(param) {
			add("nil "+t.params[i], d, map[int]func(*Scope) reflect.Value{i: zero[i]})
		}
		s.addFieldCalls(param, t.params[i], func(how string, f func(*Scope) reflect.Value) {
			add(how, anyResult, map[int]func(*Scope) reflect.Value{i: f})
		})
	}
	if len(zero) > 0 && isFunc {
		d := anyResult
		if required || returnsError(t.typ) && s.takesOptions(t.typ) {
			d = optionError
		}
		add("zero", d, zero)
	}
	add("samples", anyResult, nil)
	calls = append(calls, s.listContextCalls(t)...)
	return append(calls, s.listRepeatedCalls(t)...)
}

// demandOfNil returns which error a nil argument needs.
func demandOfNil(f, param reflect.Type) demand {
	switch param.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Func:
		if returnsError(f) {
			return optionError
		}
	}
	return anyResult
}

// addFieldCalls has add called for each field of an options struct that can be nil.
func (s *Suite) addFieldCalls(param reflect.Type, name string, add func(string, func(*Scope) reflect.Value)) {
	if param.Kind() != reflect.Struct || !s.isOwn(param) || s.isMade(param) {
		return
	}
	for i := range param.NumField() {
		if field := param.Field(i); canBeNil(field.Type) && field.IsExported() {
			add("nil "+name+"."+field.Name, func(sc *Scope) reflect.Value {
				v := reflect.New(param).Elem()
				v.Set(sc.makeSample(param, 0))
				v.Field(i).SetZero()
				return v
			})
		}
	}
}

// listContextCalls returns the calls with a context that is cancelled.
func (s *Suite) listContextCalls(t target) []call {
	if t.typ.NumIn() == 0 || t.typ.In(0) != contextType() {
		return nil
	}
	return []call{{t.name + ": cancelled context", anyResult, Full, func(sc *Scope) []func() []reflect.Value {
		fn := t.bind(sc)
		args := sc.sampleArgs(t.typ, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		args[0] = reflect.ValueOf(ctx)
		return []func() []reflect.Value{func() []reflect.Value { return fn.Call(args) }}
	}}}
}

// listRepeatedCalls returns the calls that are made twice: one after the other, and at a time where the name promises
// that it can be: Run, Start, Close, Stop.
func (s *Suite) listRepeatedCalls(t target) []call {
	var calls []call
	for _, answers := range []Answers{Empty, Full} {
		calls = append(calls, call{
			fmt.Sprintf("%s: twice, %v stubs", t.name, answers), anyResult, answers, func(sc *Scope) []func() []reflect.Value {
				fn, args := t.bind(sc), sc.sampleArgs(t.typ, nil)
				return []func() []reflect.Value{func() []reflect.Value {
					first := fn.Call(args)
					sc.AddCleanup(func() { closeResults(first) })
					return fn.Call(args)
				}}
			},
		})
	}
	if slices.Contains(onceNames, lastName(t.name)) {
		calls = append(calls, call{t.name + ": two at a time", anyResult, Full, func(sc *Scope) []func() []reflect.Value {
			fn, args := t.bind(sc), sc.sampleArgs(t.typ, nil)
			f := func() []reflect.Value { return fn.Call(args) }
			return []func() []reflect.Value{f, f}
		}})
	}
	return calls
}

// onceNames are the methods that users call once by their meaning.
var onceNames = []string{"Run", "Start", "Close", "Stop"}

func lastName(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// String is the answers' name.
func (a Answers) String() string { return [...]string{"failing", "empty", "full"}[a] }

// listMethodCalls returns the calls of a type's methods.
func (s *Suite) listMethodCalls(t Type) []call {
	var calls []call
	pointer := reflect.PointerTo(t.Type)
	for m := range methodsOf(pointer) {
		to := target{t.Name + "." + m.Name, withoutReceiver(m.Type), t.Methods[m.Name], nil}
		calls = append(calls, s.listZeroReceiverCalls(t, m, to)...)
		if !s.isMade(t.Type) || !s.canMake(t.Type) {
			continue
		}
		to.bind = func(sc *Scope) reflect.Value { return sc.makeSample(pointer, 0).MethodByName(m.Name) }
		calls = append(calls, s.listArgumentCalls(to, false)...)
		calls = append(calls, s.listClosedCalls(pointer, to, m)...)
	}
	return calls
}
