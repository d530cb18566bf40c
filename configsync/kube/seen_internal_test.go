// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// version is an object of that UID and version.
func version(uid string, n int) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": uid}}}
	u.SetResourceVersion(strconv.Itoa(n))
	return u
}

// uncomparable is a version of the object a of which nobody can say when it was.
func uncomparable() *unstructured.Unstructured {
	u := version("a", 6)
	u.SetResourceVersion("x6")
	return u
}

// A life is what happens to the knowledge of an object, and the version that is known after it; empty: it is read.
type life struct {
	name  string
	steps []func(*seen)
	want  string
}

func (l life) check(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, got := &seen{}, ""
		for _, step := range l.steps {
			step(s)
		}
		if u := s.fresh(); u != nil {
			got = u.GetResourceVersion()
		}
		if got != l.want {
			t.Errorf("%s: the version %q is not read again, want %q", l.name, got, l.want)
		}
	})
}

func follow(n int) func(*seen) { return func(s *seen) { s.follow(n) } }

func word(version string) func(*seen) { return func(s *seen) { s.word(version) } }

func watched(u *unstructured.Unstructured) func(*seen) { return func(s *seen) { s.watched(u) } }

// read is an answer; the steps happen between the question and it.
func read(u *unstructured.Unstructured, steps ...func(*seen)) func(*seen) {
	return func(s *seen) {
		asked := s.asking()
		for _, step := range steps {
			step(s)
		}
		s.read(u, asked)
	}
}

// TestSeenNeverGoesBack: what is not read again is the newest that is known, is recent, and is followed by a watch; in every other case the object is
// read. A watch whose server is behind, or that has lost its place, takes nothing back.
func TestSeenNeverGoesBack(t *testing.T) {
	wait := func(d time.Duration) func(*seen) { return func(*seen) { <-time.After(d) } }
	for _, l := range []life{
		{"nothing was seen", []func(*seen){follow(1)}, ""},
		{"read, and nobody watches", []func(*seen){read(version("a", 5))}, ""},
		{"read, and watched", []func(*seen){follow(1), read(version("a", 5))}, "5"},
		{"the watch has ended", []func(*seen){follow(1), read(version("a", 5)), follow(-1)}, ""},
		{"one of two watches has ended", []func(*seen){follow(1), follow(1), read(version("a", 5)), follow(-1)}, "5"},
		{"watched, and never read", []func(*seen){follow(1), watched(version("a", 5))}, ""},
		{"news", []func(*seen){follow(1), read(version("a", 5)), watched(version("a", 6))}, "6"},
		{"news of more digits", []func(*seen){follow(1), read(version("a", 9)), watched(version("a", 10))}, "10"},
		{"a watch that is behind", []func(*seen){follow(1), read(version("a", 6)), watched(version("a", 5))}, "6"},
		{"an answer that was overtaken", []func(*seen){follow(1), read(version("a", 5)), watched(version("a", 7)), read(version("a", 6))}, "7"},
		{"another object of the name", []func(*seen){follow(1), read(version("a", 5)), watched(version("b", 6))}, ""},
		{"another object was read", []func(*seen){follow(1), read(version("a", 5)), read(version("b", 6))}, "6"},
		{"versions that can't be compared", []func(*seen){follow(1), read(version("a", 5)), watched(uncomparable())}, ""},
		{"two minutes", []func(*seen){follow(1), read(version("a", 5)), wait(recent)}, "5"},
		{"more than two minutes", []func(*seen){follow(1), read(version("a", 5)), wait(recent + 1)}, ""},
		{"news after a long time", []func(*seen){follow(1), read(version("a", 5)), wait(time.Hour), watched(version("a", 6))}, "6"},
		{"old news don't count as recent", []func(*seen){follow(1), read(version("a", 5)), wait(time.Hour), watched(version("a", 4))}, ""},
		{"forgotten", []func(*seen){follow(1), read(version("a", 5)), (*seen).forget}, ""},
		{"news of what was forgotten", []func(*seen){follow(1), read(version("a", 5)), (*seen).forget, watched(version("a", 6))}, ""},
	} {
		l.check(t)
	}
}

// TestAWatchThatLivesIsBelieved: a bookmark says that what is known still stands, if the watch has come that far. A watch that is silent, behind, or of
// something else says nothing.
func TestAWatchThatLivesIsBelieved(t *testing.T) {
	wait := func(d time.Duration) func(*seen) { return func(*seen) { <-time.After(d) } }
	known := func(more ...func(*seen)) []func(*seen) {
		return append([]func(*seen){follow(1), read(version("a", 5)), wait(recent + time.Second)}, more...)
	}
	for _, l := range []life{
		{"a later word", known(word("7")), "5"},
		{"a word of the same version", known(word("5")), "5"},
		{"a word after each of its minutes", known(word("7"), wait(time.Minute), word("8"), wait(time.Minute), word("9"), wait(time.Minute)), "5"},
		{"no word for too long", known(word("7"), wait(recent+1)), ""},
		{"a watch that is behind", known(word("4")), ""},
		{"a word that can't be compared", known(word("x7")), ""},
		{"a word on what was forgotten", known((*seen).forget, word("7")), ""},
		{"a word on a watch that has ended", known(word("7"), follow(-1)), ""},
		{"a word on what was never read", []func(*seen){follow(1), watched(version("a", 5)), word("7")}, ""},
	} {
		l.check(t)
	}
}

// TestSeenWhileItIsRead: what a watch brings between a question and its answer is not lost behind the answer, which is older.
func TestSeenWhileItIsRead(t *testing.T) {
	for _, l := range []life{
		{"news while it is read", []func(*seen){follow(1), read(version("a", 5), watched(version("a", 6)))}, "6"},
		{"old news while it is read", []func(*seen){follow(1), read(version("a", 5), watched(version("a", 4)))}, "5"},
		{"news while a known one is read", []func(*seen){follow(1), read(version("a", 4)), read(version("a", 5), watched(version("a", 6)))}, "6"},
		{"gone while it is read", []func(*seen){follow(1), read(version("a", 5), (*seen).forget)}, ""},
		{"gone after news, while it is read", []func(*seen){follow(1), read(version("a", 5), watched(version("a", 6)), (*seen).forget)}, ""},
		{"news after it was forgotten, while it is read", []func(*seen){follow(1), read(version("a", 5), (*seen).forget, watched(version("a", 6)))}, ""},
		{"another object while it is read", []func(*seen){follow(1), read(version("a", 5), watched(version("b", 6)))}, ""},
		{"what can't be compared while it is read", []func(*seen){follow(1), read(version("a", 5), watched(uncomparable()))}, ""},
		{"read again while it is read", []func(*seen){follow(1), read(version("a", 5), read(version("a", 7)))}, "7"},
		{"read again once it was gone, while it is read", []func(*seen){follow(1), read(version("a", 5), (*seen).forget, read(version("b", 7)))}, "7"},
	} {
		l.check(t)
	}
}
