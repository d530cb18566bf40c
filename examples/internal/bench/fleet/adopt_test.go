// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

// Nobody is always first: whoever was is last in the next round. The first round counts for nobody.
func TestTurnsRotate(t *testing.T) {
	var order []string
	var turns []*turn
	for _, name := range []string{"a", "b", "c"} {
		turns = append(turns, &turn{name: name, burst: func(context.Context) (burst, error) {
			order = append(order, name)
			return burst{fleet: []time.Duration{time.Duration(len(order))}}, nil
		}})
	}
	if err := take(t.Context(), turns, 3); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(order, ""), "abc"+"bca"+"cab"+"abc"; got != want {
		t.Errorf("the order is %s, want %s", got, want)
	}
	for name, want := range map[string][]time.Duration{"a": {6, 8, 10}, "b": {4, 9, 11}, "c": {5, 7, 12}} {
		i := slices.IndexFunc(turns, func(t *turn) bool { return t.name == name })
		var got []time.Duration
		for _, b := range turns[i].bursts {
			got = append(got, b.fleet...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the bursts %v, want %v", name, got, want)
		}
	}
}
