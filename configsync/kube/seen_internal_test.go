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

// TestSeenNeverGoesBack: what is not read again is the newest that is known, is recent, and is followed by a watch; in every other case the object is
// read. A watch whose server is behind, or that has lost its place, takes nothing back, and what it brings while the object is read is not lost.
func TestSeenNeverGoesBack(t *testing.T) {
	read := func(u *unstructured.Unstructured) func(*seen) { return func(s *seen) { s.read(u, s.asking()) } }
	meanwhile := func(u *unstructured.Unstructured, steps ...func(*seen)) func(*seen) { // between the question and its answer
		return func(s *seen) {
			asked := s.asking()
			for _, step := range steps {
				step(s)
			}
			s.read(u, asked)
		}
	}
	watched := func(u *unstructured.Unstructured) func(*seen) { return func(s *seen) { s.watched(u) } }
	follow := func(n int) func(*seen) { return func(s *seen) { s.follow(n) } }
	wait := func(d time.Duration) func(*seen) { return func(*seen) { time.Sleep(d) } }
	uncomparable := version("a", 6)
	uncomparable.SetResourceVersion("x6")
	for _, c := range []struct {
		name  string
		steps []func(*seen)
		want  string // the version that is known; empty: it is read
	}{
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
		{"versions that can't be compared", []func(*seen){follow(1), read(version("a", 5)), watched(uncomparable)}, ""},
		{"a minute", []func(*seen){follow(1), read(version("a", 5)), wait(time.Minute)}, "5"},
		{"more than a minute", []func(*seen){follow(1), read(version("a", 5)), wait(time.Minute + 1)}, ""},
		{"news after a long time", []func(*seen){follow(1), read(version("a", 5)), wait(time.Hour), watched(version("a", 6))}, "6"},
		{"old news don't count as recent", []func(*seen){follow(1), read(version("a", 5)), wait(time.Hour), watched(version("a", 4))}, ""},
		{"forgotten", []func(*seen){follow(1), read(version("a", 5)), (*seen).forget}, ""},
		{"news of what was forgotten", []func(*seen){follow(1), read(version("a", 5)), (*seen).forget, watched(version("a", 6))}, ""},
		{"news while it is read", []func(*seen){follow(1), meanwhile(version("a", 5), watched(version("a", 6)))}, "6"},
		{"old news while it is read", []func(*seen){follow(1), meanwhile(version("a", 5), watched(version("a", 4)))}, "5"},
		{"news while a known one is read", []func(*seen){follow(1), read(version("a", 4)), meanwhile(version("a", 5), watched(version("a", 6)))}, "6"},
		{"gone while it is read", []func(*seen){follow(1), meanwhile(version("a", 5), (*seen).forget)}, ""},
		{"gone after news, while it is read", []func(*seen){follow(1), meanwhile(version("a", 5), watched(version("a", 6)), (*seen).forget)}, ""},
		{"news after it was forgotten, while it is read", []func(*seen){follow(1), meanwhile(version("a", 5), (*seen).forget, watched(version("a", 6)))}, ""},
		{"another object while it is read", []func(*seen){follow(1), meanwhile(version("a", 5), watched(version("b", 6)))}, ""},
		{"what can't be compared while it is read", []func(*seen){follow(1), meanwhile(version("a", 5), watched(uncomparable))}, ""},
		{"read again while it is read", []func(*seen){follow(1), meanwhile(version("a", 5), read(version("a", 7)))}, "7"},
		{"read again once it was gone, while it is read", []func(*seen){follow(1), meanwhile(version("a", 5), (*seen).forget, read(version("b", 7)))}, "7"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, got := &seen{}, ""
			for _, step := range c.steps {
				step(s)
			}
			if u := s.fresh(); u != nil {
				got = u.GetResourceVersion()
			}
			if got != c.want {
				t.Errorf("%s: the version %q is not read again, want %q", c.name, got, c.want)
			}
		})
	}
}
