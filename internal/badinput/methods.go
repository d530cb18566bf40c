// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package badinput

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
)

// listZeroReceiverCalls returns the calls of a method on the zero value of its type, with zero arguments and with
// samples. A type that only functions make has to say that it was not made.
func (s *Suite) listZeroReceiverCalls(t Type, m reflect.Method, to target) []call {
	d := anyResult
	if s.isMade(t.Type) && s.canMake(t.Type) && returnsError(to.typ) {
		d = someError
	}
	bind := func() reflect.Value { return reflect.New(t.Type).MethodByName(m.Name) }
	calls := []call{{to.name + ": zero receiver", d, Full, func(sc *Scope) []func() []reflect.Value {
		fn, args := bind(), sc.sampleArgs(to.typ, nil)
		return []func() []reflect.Value{func() []reflect.Value { return fn.Call(args) }}
	}}}
	if to.typ.NumIn() == 0 || m.Name == "DeepCopyInto" {
		return calls
	}
	name := to.name + ": zero receiver and arguments"
	return append(calls, call{name, d, Full, func(sc *Scope) []func() []reflect.Value {
		fn := bind()
		values := map[int]reflect.Value{}
		for i := range to.typ.NumIn() {
			if to.typ.In(i) != contextType() {
				values[i] = reflect.Zero(to.typ.In(i))
			}
		}
		args := sc.sampleArgs(to.typ, values)
		return []func() []reflect.Value{func() []reflect.Value { return fn.Call(args) }}
	}})
}

// listClosedCalls returns the calls of a method after Close or Stop of its receiver.
func (s *Suite) listClosedCalls(pointer reflect.Type, to target, m reflect.Method) []call {
	var calls []call
	for _, end := range []string{"Close", "Stop"} {
		closer, ok := pointer.MethodByName(end)
		if !ok || closer.Type.NumIn() > 1 {
			continue
		}
		calls = append(calls, call{to.name + ": after " + end, anyResult, Full, func(sc *Scope) []func() []reflect.Value {
			v := sc.makeSample(pointer, 0)
			fn, args := v.MethodByName(m.Name), sc.sampleArgs(to.typ, nil)
			return []func() []reflect.Value{func() []reflect.Value {
				v.MethodByName(end).Call(nil)
				return fn.Call(args)
			}}
		}})
	}
	return calls
}

// listResultCalls returns the calls of the methods of what a function returns, where that is an interface of the
// module.
// Where there is a sample of the interface, one function stands for all.
func listResultCalls(s *Suite, f Func) []call {
	fn := reflect.TypeOf(f.Fn)
	if fn.NumOut() == 0 || fn.Out(0).Kind() != reflect.Interface || !s.isOwn(fn.Out(0)) {
		return nil
	}
	bind := func(sc *Scope) reflect.Value { return sc.callConstructor(fn.Out(0), f) }
	if _, sampled := s.Samples[fn.Out(0)]; sampled {
		if !s.Table.isFirst(f, fn.Out(0)) {
			return nil
		}
		bind = func(sc *Scope) reflect.Value { return sc.makeSample(fn.Out(0), 0) }
	}
	var calls []call
	for m := range methodsOf(fn.Out(0)) {
		if !m.IsExported() {
			continue
		}
		params := make([]string, m.Type.NumIn())
		for i := range params {
			params[i] = fmt.Sprintf("argument %d", i+1)
		}
		method := func(sc *Scope) reflect.Value { return bind(sc).MethodByName(m.Name) }
		calls = append(calls, s.listArgumentCalls(target{f.Name + "()." + m.Name, m.Type, params, method}, false)...)
	}
	return calls
}

// isFirst reports whether a function is the first one of the table that returns a type.
func (t Table) isFirst(f Func, result reflect.Type) bool {
	i := slices.IndexFunc(t.Funcs, func(other Func) bool {
		fn := reflect.TypeOf(other.Fn)
		return fn.NumOut() > 0 && fn.Out(0) == result
	})
	return t.Funcs[i].Name == f.Name
}

// canMake reports whether there is a sample of a type or a pointer to it, or a constructor.
func (s *Suite) canMake(t reflect.Type) bool {
	for _, t := range []reflect.Type{t, reflect.PointerTo(t)} {
		_, sampled := s.Samples[t]
		_, constructed := s.constructorOf(t)
		if sampled || constructed {
			return true
		}
	}
	return false
}

// methodsOf yields the methods of a type. Those that run or end the receiver are last.
func methodsOf(t reflect.Type) iter.Seq[reflect.Method] {
	methods := make([]reflect.Method, t.NumMethod())
	for i := range methods {
		methods[i] = t.Method(i)
	}
	rank := func(m reflect.Method) int { return slices.Index(onceNames, m.Name) }
	slices.SortStableFunc(methods, func(a, b reflect.Method) int { return rank(a) - rank(b) })
	return slices.Values(methods)
}

// withoutReceiver returns a method's type as its value has it.
func withoutReceiver(f reflect.Type) reflect.Type {
	in := make([]reflect.Type, 0, f.NumIn())
	for i := 1; i < f.NumIn(); i++ {
		in = append(in, f.In(i))
	}
	return reflect.FuncOf(in, resultsOf(f), f.IsVariadic())
}

func canBeNil(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return t != contextType()
	default:
		return false
	}
}

func returnsError(f reflect.Type) bool { return f.NumOut() > 0 && f.Out(f.NumOut()-1) == errorType() }

// takesOptions reports whether a function takes a struct whose name says that it holds options.
func (s *Suite) takesOptions(f reflect.Type) bool {
	for i := range f.NumIn() {
		t := f.In(i)
		named := strings.Contains(t.Name(), "Options") || strings.Contains(t.Name(), "Config")
		if named && t.Kind() == reflect.Struct && s.isOwn(t) {
			return true
		}
	}
	return false
}
