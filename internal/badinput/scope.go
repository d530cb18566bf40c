// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package badinput

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"
)

// errStub is the error of a stub that fails.
var errStub = errors.New("badinput: the stub fails")

// callTime is the life of a call's context. A call that runs until its context ends takes this long.
const callTime = 60 * time.Millisecond

// Answers says what stubs return.
type Answers int

// What stubs return from a function that can fail. One that can't fail returns a sample, except under Empty.
const (
	Failing Answers = iota // an error
	Empty                  // zero values, without an error
	Full                   // samples, without an error
)

// A Scope is what one call may use: a context, and what is closed at its end.
type Scope struct {
	// Context ends soon after the call has begun.
	Context context.Context
	// Dir is an empty directory.
	Dir string

	answers Answers
	cancel  context.CancelFunc
	suite   *Suite

	mu       sync.Mutex // stubs are called in any goroutine
	cleanups []func()
	missing  []string
}

func (s *Suite) newScope(dir string, answers Answers) *Scope {
	ctx, cancel := context.WithCancel(context.Background())
	return &Scope{Context: ctx, Dir: dir, answers: answers, cancel: cancel, suite: s}
}

// AddCleanup has f called at the end of the call, the last one first.
func (s *Scope) AddCleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

// noteMissing notes that there is no sample of a type. The zero value is used.
func (s *Scope) noteMissing(t reflect.Type, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing = append(s.missing, fmt.Sprintf("no sample of %v: %s", t, why))
}

// takeMissing returns what was noted, once.
func (s *Scope) takeMissing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing := s.missing
	s.missing = nil
	return missing
}

func (s *Scope) closeAll() {
	s.cancel()
	s.mu.Lock()
	cleanups := s.cleanups
	s.mu.Unlock()
	for i := len(cleanups) - 1; i >= 0; i-- {
		cleanups[i]()
	}
}
