// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// counter is the input of a process that answers each order with the same count.
type counter struct{ lines chan string }

func (c counter) Write(order []byte) (int, error) {
	c.lines <- `{"Leases":3}`
	return len(order), nil
}

func (counter) Close() error { return nil }

var _ io.WriteCloser = counter{}

// TestCrowdIsSeenOrSaid: a load that the machine cannot bear is a line, and no end of the benchmark.
func TestCrowdIsSeenOrSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := make(chan string, 1)
		p := &process{in: counter{lines}, lines: lines}
		if err := p.sees(t.Context(), 3, time.Minute); err != nil {
			t.Errorf("got %v, want nil: all 3 are there", err)
		}
		var crowd *crowdError
		if err := p.sees(t.Context(), 5, time.Minute); !errors.As(err, &crowd) || crowd.Error() != "3 of 5 Leases were seen after 1m0s" {
			t.Errorf("got %v, want it to say that 3 of 5 were there after a minute", err)
		}
	})
}
