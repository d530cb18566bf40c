// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
)

// nodes is the part of a cache that has only nodes.
type nodes struct {
	drain.Cache
	all map[string]*corev1.Node
}

func (n nodes) Node(name string) *corev1.Node { return n.all[name] }

// A release that changes nothing, or not what is hoped for, says so.
func TestReleaseSaysWhatItWillNotDo(t *testing.T) {
	node := func(mark string, cordoned bool) *corev1.Node {
		n := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: cordoned}}
		if mark != "" {
			n.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{drain.MarkAnnotation: mark}}
		}
		return n
	}
	of := func(holders ...string) string {
		return `{"holders":[{"holder":"` + strings.Join(holders, `"},{"holder":"`) + `"}]}`
	}
	cache := nodes{all: map[string]*corev1.Node{
		"mine": node(of("me"), true), "ours": node(of("me", "you"), true), "yours": node(of("you"), true), "free": node("", false),
		"foreign": node("", true), "broken": node("{", true),
	}}
	for name, want := range map[string]string{
		"mine": "", "ours": "ours: stays cordoned, because it is also held by you", "yours": "yours: not held by me; --holder must be one of: you",
		"free": "free: nobody holds it", "foreign": "foreign: cordoned, but not by a drain: kubectl uncordon foreign", "gone": "",
		"broken": "broken: cordoned, but not by a drain: kubectl uncordon broken",
	} {
		if got := strings.Join(notes(cache, []string{name}, "me"), "|"); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// What went wrong while nodes were given back isn't hidden by the interruption.
func TestErrorsBesidesAnInterruption(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct{ err, want error }{
		{nil, nil}, {context.Canceled, nil}, {errors.Join(context.Canceled, nil), nil}, {errors.Join(context.Canceled, fmt.Errorf("x: %w", boom)), boom},
	} {
		if got := otherErrors(c.err); !errors.Is(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("otherErrors(%v): got %v, want %v", c.err, got, c.want)
		}
	}
}
