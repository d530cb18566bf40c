// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package badinput

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/option"
)

// A result is how a call ended.
type result struct {
	values   []reflect.Value
	panicked string
}

func (s *Suite) patienceTime() time.Duration { return cmp.Or(s.Patience, 10*time.Second) }

// runCall makes one call and returns its faults. hung says that a goroutine of the call is still running, so that the
// process is of no more use.
func (s *Suite) runCall(c call) (faults []string, hung bool) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return []string{err.Error()}, false
	}
	defer os.RemoveAll(dir)
	if err := os.Chdir(dir); err != nil {
		return []string{err.Error()}, false
	}
	before := listGoroutines()
	scope := s.newScope(dir, c.answers)
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }

	results := make(chan result, 2)
	started := 0
	prepared := make(chan result, 1)
	var calls []func() []reflect.Value
	go func() { prepared <- catchPanic(func() []reflect.Value { calls = c.make(scope); return nil }) }()
	select {
	case r := <-prepared:
		if r.panicked != "" {
			fault("preparing the call: %s", r.panicked)
		}
		if missing := scope.takeMissing(); len(missing) > 0 {
			faults, calls = append(faults, missing...), nil
		}
	case <-time.After(s.patienceTime()):
		return []string{"preparing the call hangs:\n" + newStacks(before)}, true
	}
	timer := time.AfterFunc(callTime, scope.cancel)
	defer timer.Stop()
	for _, f := range calls {
		started++
		go func() { results <- catchPanic(f) }()
	}
	deadline := time.After(callTime + s.patienceTime())
	for range started {
		select {
		case r := <-results:
			if r.panicked != "" {
				fault("panics: %s", r.panicked)
				continue
			}
			scope.AddCleanup(func() { closeResults(r.values) })
			faults = append(faults, s.checkResult(c, r.values)...)
			faults = append(faults, s.useResults(scope, r.values)...)
		case <-deadline:
			return append(faults, "hangs:\n"+newStacks(before)), true
		}
	}
	scope.closeAll()
	faults = append(faults, scope.takeMissing()...)
	if left := s.awaitGoroutines(before); left != "" {
		return append(faults, "leaves goroutines:\n"+left), true
	}
	return faults, false
}

// checkResult compares what a call returned with what it has to return.
func (s *Suite) checkResult(c call, values []reflect.Value) []string {
	err := errorOf(values)
	_, excepted := s.Exceptions[c.name]
	var typed *option.Error
	switch {
	case c.demand != someError && c.demand != optionError:
		return nil
	case err == nil && !excepted:
		return []string{"returns no error"}
	case excepted:
		return nil
	case c.demand == optionError && !errors.As(err, &typed):
		return []string{fmt.Sprintf("returns an error that is no option.Error: %T: %v", err, err)}
	case c.demand == optionError && len(typed.Missing) == 0:
		return []string{fmt.Sprintf("returns an error that names nothing as missing: %v", err)}
	}
	return nil
}

// closeResults closes what a call has made.
func closeResults(values []reflect.Value) {
	if errorOf(values) != nil {
		return
	}
	for _, v := range values {
		if closer, ok := v.Interface().(io.Closer); ok && (v.Kind() != reflect.Pointer || !v.IsNil()) {
			_ = closer.Close()
		}
	}
}

// useResults calls what a call has made: functions, and the methods of the module's own types. It has to bear being
// used.
func (s *Suite) useResults(scope *Scope, values []reflect.Value) (faults []string) {
	if errorOf(values) != nil {
		return nil
	}
	for _, v := range values {
		switch {
		case v.Kind() == reflect.Func && !v.IsNil():
			faults = append(faults, s.useFunc(scope, "the function that it returns", v)...)
		case v.Kind() == reflect.Pointer && !v.IsNil() && s.isOwn(v.Type().Elem()),
			v.Kind() == reflect.Interface && !v.IsNil() && v.Type() != errorType() && s.isOwn(v.Type()):
			for m := range methodsOf(v.Type()) {
				if !m.IsExported() {
					continue
				}
				faults = append(faults, s.useFunc(scope, "its result's "+m.Name, v.MethodByName(m.Name))...)
			}
		}
	}
	return faults
}

func (s *Suite) useFunc(scope *Scope, name string, f reflect.Value) []string {
	done := make(chan result, 1)
	go func() {
		done <- catchPanic(func() []reflect.Value { return f.Call(scope.sampleArgs(f.Type(), nil)) })
	}()
	select {
	case r := <-done:
		if r.panicked != "" {
			return []string{name + " panics: " + r.panicked}
		}
		return nil
	case <-time.After(callTime + s.patienceTime()):
		return []string{name + " hangs:\n" + newStacks(nil)}
	}
}

// catchPanic calls f and keeps its panic.
func catchPanic(f func() []reflect.Value) (r result) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked = fmt.Sprintf("%v\n%s", p, panicStack(string(debug.Stack())))
		}
	}()
	return result{values: f()}
}

// panicStack cuts a stack to the frames between the panic and the reflection that made the call.
func panicStack(stack string) string {
	if _, after, ok := strings.Cut(stack, "panic("); ok {
		stack = after
	}
	before, _, _ := strings.Cut(stack, "reflect.Value.call")
	lines := strings.Split(before, "\n")
	return strings.Join(lines[min(2, len(lines)):min(14, len(lines))], "\n")
}

// listGoroutines returns the stacks of all goroutines, by the line that names them.
func listGoroutines() map[string]string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		head, _, _ := strings.Cut(stack, " [")
		all[head] = stack
	}
	return all
}

// newStacks returns the stacks of the goroutines that are not in before, without the one that asks.
func newStacks(before map[string]string) string {
	var b strings.Builder
	for name, stack := range listGoroutines() {
		if _, ok := before[name]; !ok && !strings.Contains(stack, "badinput.listGoroutines") {
			lines := strings.SplitAfter(stack, "\n")
			b.WriteString(strings.Join(lines[:min(len(lines), 24)], "") + "\n\n")
		}
	}
	return b.String()
}

// awaitGoroutines waits until the goroutines that are not in before have ended, and returns those that did not.
func (s *Suite) awaitGoroutines(before map[string]string) string {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(s.patienceTime())
	for {
		if runtime.NumGoroutine() <= len(before) {
			return ""
		}
		left := newStacks(before)
		if left == "" {
			return ""
		}
		select {
		case <-tick.C:
		case <-deadline:
			return left
		}
	}
}
