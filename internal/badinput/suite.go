// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package badinput

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"
)

// A Func is an exported function.
type Func struct {
	// Name is its package's path inside the module, and its name: "drain/kube.NewCache".
	Name string
	// Fn is the function. A generic one has a type argument.
	Fn any
	// Params are the names of its parameters.
	Params []string
}

// A Type is an exported type that is not an interface.
type Type struct {
	// Name is its package's path inside the module, and its name: "drain.Drainer".
	Name string
	// Type is the type. A generic one has a type argument.
	Type reflect.Type
	// Methods are the parameters' names of its methods and those of its pointer.
	Methods map[string][]string
}

// A Table lists what the library exports.
type Table struct {
	Funcs []Func
	Types []Type
	// Stubs make implementations of interfaces.
	Stubs map[reflect.Type]func(*Scope) any
}

// A Suite is a table, and what cannot be generated.
type Suite struct {
	// Module is the path of the module whose packages are called.
	Module string
	Table  Table
	// Samples make usable values of types. What is missing is filled by its kind, or made by its constructor.
	Samples map[reflect.Type]func(*Scope) any
	// Patience is how long a call may take after the end of its context, and its goroutines after its end; 0 is 10
	// seconds. Only a call that has a fault takes as long.
	Patience time.Duration
	// Exceptions are the calls that need no error, each with the reason, by "function: call".
	Exceptions map[string]string

	once         sync.Once
	constructors map[reflect.Type]Func
}

// constructorOf returns the function that makes a type: the first one of the type's package whose first result is of
// the type or a pointer to it, if all values of the type come from functions.
func (s *Suite) constructorOf(t reflect.Type) (Func, bool) {
	s.once.Do(func() {
		s.constructors = map[reflect.Type]Func{}
		for _, f := range s.Table.Funcs {
			fn := reflect.TypeOf(f.Fn)
			if fn.NumOut() == 0 || !s.isMade(fn.Out(0)) {
				continue
			}
			if _, ok := s.constructors[fn.Out(0)]; !ok {
				s.constructors[fn.Out(0)] = f
			}
		}
	})
	f, ok := s.constructors[t]
	return f, ok
}

// isMade reports whether values of a type come from functions alone: it is a struct of the module, or a pointer to one,
// whose fields a user can't set, or an interface with an unexported method.
func (s *Suite) isMade(t reflect.Type) bool {
	if t.Kind() == reflect.Interface && s.isOwn(t) {
		return slices.ContainsFunc(slices.Collect(methodsOf(t)), func(m reflect.Method) bool { return !m.IsExported() })
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || !s.isOwn(t) {
		return false
	}
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			return true
		}
	}
	return false
}

// ListPackages returns the packages of the table, sorted.
func (s *Suite) ListPackages() []string {
	found := map[string]bool{}
	for _, f := range s.Table.Funcs {
		found[packageOf(f.Name)] = true
	}
	for _, t := range s.Table.Types {
		found[packageOf(t.Name)] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// CallNames returns the names of the calls of a package.
func (s *Suite) CallNames(pkg string) []string {
	var names []string
	for _, c := range s.listCalls(pkg) {
		names = append(names, c.name)
	}
	return names
}
