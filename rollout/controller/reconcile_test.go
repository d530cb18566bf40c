// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/controller/controllertest"
	"github.com/belayproject/belay/rollout/protocol"
)

// Reconcile makes passes for its own domain, and refuses another one without a call.
func TestReconcileByDomain(t *testing.T) {
	cluster := controllertest.New(controllertest.Options{})
	cluster.AddNode("a", nil, protocol.Revision{Name: "v1", Digest: "sha256:11"})
	cluster.PutRollout("all", rollout.Policy{
		UID: "rollout-1", Target: rollout.Revision{Name: "v2", Digest: "sha256:22"},
		Groups: []rollout.Group{{Name: "all", Selector: labels.Everything()}},
	})
	o := cluster.Connect().Options()
	o.Domain = "east"
	c, err := controller.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reconcile(t.Context(), "west"); err == nil || !strings.Contains(err.Error(), `"west"`) || !strings.Contains(err.Error(), `"east"`) {
		t.Errorf("reconciling another domain: %v, want an error that names both", err)
	}
	for i := 0; cluster.Runs("v2") < 1; i++ {
		if i == 100 {
			t.Fatal("100 passes have not brought the node to v2")
		}
		if _, err := c.Reconcile(t.Context(), "east"); err != nil {
			t.Fatal(err)
		}
		cluster.Agents()
	}
}

// A second Run while the first one goes on is an error; a Run after its end is not.
func TestRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := controller.New(controllertest.New(controllertest.Options{}).Connect().Options())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			ctx, stop := context.WithCancel(t.Context())
			first := make(chan error, 1)
			go func() { first <- c.Run(ctx, nil) }()
			synctest.Wait()
			if err := c.Run(ctx, nil); !errors.Is(err, controller.ErrRunning) {
				t.Errorf("a second Run returned %v, want ErrRunning", err)
			}
			stop()
			if err := <-first; err != nil {
				t.Errorf("the first Run returned %v, want nil", err)
			}
		}
	})
}

// Everything that is missing or wrong is in one error.
func TestNewNamesEveryOption(t *testing.T) {
	_, err := controller.New(controller.Options{Gates: []controller.Gate{nil}, ShowEvery: -1})
	for _, want := range []string{"Options.Ledger", "Options.Rollouts", "Options.Fleet", "Options.Shadows", "Options.Gates[0]", "Options.ShowEvery"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want an error that names %q", err, want)
		}
	}
}
