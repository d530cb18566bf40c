// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belayproject/belay/internal/option"
)

// Options are what an agent is made of. The first four are required.
type Options struct {
	Shadows Shadows
	Disk    Disk
	Updater Updater
	// NodeUID asks for the UID of the Node that the agent runs on, from the API server or from its own bound token. It is asked before an order
	// is followed, and where the shadow is in an attempt that the Disk does not know. It must not answer from a time before the Node was registered anew.
	NodeUID func(ctx context.Context) (string, error)

	// VerifyFor is the healthy time that ends an attempt. Zero means 1 minute.
	VerifyFor time.Duration
	// VerifyEvery is the time between two checks. Zero means 10 seconds.
	VerifyEvery time.Duration
	// VerifyWithin is the running time after which a node that was not healthy for VerifyFor has failed. Zero means 10 minutes, and at least
	// twice VerifyFor.
	VerifyWithin time.Duration
	// RevertBroken: a node that has failed so goes back to what it ran before, if the updater can. Otherwise it stays as it is, and the controller
	// decides. An attempt that goes back already is not taken back.
	RevertBroken bool

	// CallTimeout bounds each call of Shadows, Disk and NodeUID, CheckTimeout each Observe, Preflight, Disruption and Verify, ApplyTimeout each
	// Prepare, Apply and Revert. Zero means 10 seconds, 1 minute and 30 minutes.
	CallTimeout, CheckTimeout, ApplyTimeout time.Duration

	// Changed wakes Run: there is a value in it after the shadow may have changed. Without it Run looks each Resync.
	Changed <-chan struct{}
	// Resync is after what time Run looks though nothing has changed. Zero means 1 minute.
	Resync time.Duration
	// RetryMin and RetryMax bound the time after an error, which doubles with each. Zero means 1 second and 1 minute.
	RetryMin, RetryMax time.Duration
}

func (o Options) withDefaults() (Options, error) {
	check := option.For("rollout/nodeagent.New", nil)
	check.Require("Options.Shadows", o.Shadows, "see rollout/kube.NewAgentShadow")
	check.Require("Options.Disk", o.Disk, "see checkpoint.Open")
	check.Require("Options.Updater", o.Updater, "see Config")
	check.Require("Options.NodeUID", o.NodeUID, "the UID of the agent's Node")
	if err := check.Err(); err != nil {
		return o, err
	}
	for _, f := range []struct {
		name  string
		value *time.Duration
		usual time.Duration
	}{
		{"VerifyFor", &o.VerifyFor, time.Minute}, {"VerifyEvery", &o.VerifyEvery, 10 * time.Second},
		{"VerifyWithin", &o.VerifyWithin, max(10*time.Minute, 2*o.VerifyFor)},
		{"CallTimeout", &o.CallTimeout, 10 * time.Second}, {"CheckTimeout", &o.CheckTimeout, time.Minute},
		{"ApplyTimeout", &o.ApplyTimeout, 30 * time.Minute},
		{"Resync", &o.Resync, time.Minute}, {"RetryMin", &o.RetryMin, time.Second}, {"RetryMax", &o.RetryMax, time.Minute},
	} {
		if *f.value < 0 {
			return o, fmt.Errorf("nodeagent: Options.%s is %s, want 0 or more", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.usual
		}
	}
	if o.VerifyWithin <= o.VerifyFor {
		return o, fmt.Errorf("nodeagent: Options.VerifyWithin is %s, want more than VerifyFor, %s", o.VerifyWithin, o.VerifyFor)
	}
	if o.RetryMax < o.RetryMin {
		return o, errors.New("nodeagent: Options.RetryMax is below RetryMin")
	}
	return o, nil
}
