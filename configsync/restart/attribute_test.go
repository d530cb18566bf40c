// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart_test

import (
	"context"
	"os/exec"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/lkg"
)

// C-36: what is known of an end is completed before it is told and counted. An end that was asked for is not.
func TestAnEndIsAttributed(t *testing.T) {
	var asked atomic.Int64
	told := make(chan lkg.Exit, 9)
	n := 0
	r := begin(t, restart.Options{
		BackoffMin: time.Millisecond, BackoffMax: time.Millisecond,
		Command: func(_ context.Context, last lkg.Exit) (*exec.Cmd, error) {
			told <- last
			if n++; n > 1 {
				return self("wait"), nil
			}
			return self("exit 3"), nil
		},
		Attribute: func(_ context.Context, e lkg.Exit) lkg.Exit {
			asked.Add(1)
			e.Fault = lkg.FaultEnvironment
			return e
		},
	})
	if e := next(t, r.exits); e.Fault != lkg.FaultEnvironment || e.Kind != lkg.ExitCrash {
		t.Errorf("OnExit is told %+v, want a crash with the fault", e)
	}
	next(t, told)
	if e := next(t, told); e.Fault != lkg.FaultEnvironment {
		t.Errorf("Command is told %+v, want the fault", e)
	}
	if err := r.Restart(t.Context(), configsync.Change{}); err != nil {
		t.Fatal(err)
	}
	if e := next(t, r.exits); e.Kind != lkg.ExitPlanned || asked.Load() != 1 {
		t.Errorf("an end that was asked for is %+v after %d questions, want it planned and no further question", e,
			asked.Load())
	}
}

// C-36: no start hangs on what completes the end before it, nor is lost with a panic of it.
func TestAttributionIsBounded(t *testing.T) {
	e := lkg.Exit{Kind: lkg.ExitCrash, Signature: "exit status 3"}
	for name, attribute := range map[string]func(context.Context, lkg.Exit) lkg.Exit{
		"none": nil,
		"hangs": func(context.Context, lkg.Exit) lkg.Exit {
			time.Sleep(time.Minute) // it does not end with its context
			return lkg.Exit{}
		},
		"panics": func(context.Context, lkg.Exit) lkg.Exit { panic("no") },
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			if got := restart.AttributeExit(t.Context(), attribute, e); !cmp.Equal(got, e) || time.Since(began) > 5*time.Second {
				t.Errorf("%s: %+v after %s, want the end as it is within 5s", name, got, time.Since(began))
			}
			time.Sleep(time.Minute)
		})
	}
}
