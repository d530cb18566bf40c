// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodetier_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/nodetier"
	"github.com/belayproject/belay/internal/tier"
)

// TestCrashesEndTheRealKubelet keeps the list true for the pinned kubelet, on a node whose unchanged configuration
// keeps it running.
func TestCrashesEndTheRealKubelet(t *testing.T) {
	tier.System(t, tier.Root, tier.Kubelet)
	nodetier.Require(t)
	env := testenv.Start(t, testenv.Options{})
	tier := nodetier.Start(t, env)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for i, crash := range nodetier.Crashes() {
		node, err := tier.NewNode(fmt.Sprintf("crash-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		runGood(ctx, t, node)
		config, err := node.Config(crash.Fields)
		if err != nil {
			t.Fatal(err)
		}
		kubelet, err := node.Kubelet(config)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		err = kubelet.Start(ctx)
		if err != nil && crash.Healthy {
			t.Logf("%s: it was not seen healthy before it ended", crash.Name) // a matter of milliseconds
		}
		state, err := kubelet.Wait(ctx)
		if err != nil {
			t.Fatalf("%s: the kubelet did not exit: %v", crash.Name, err)
		}
		t.Logf("%s: %s after %s", crash.Name, state, time.Since(start).Round(time.Millisecond))
		if state.ExitCode() != crash.ExitCode {
			t.Errorf("%s: the kubelet ended with %s, want exit status %d", crash.Name, state, crash.ExitCode)
		}
		if log, err := os.ReadFile(kubelet.Log()); err != nil || !strings.Contains(string(log), crash.Says) {
			t.Errorf("%s: the kubelet's log lacks %q (%v)", crash.Name, crash.Says, err)
		}
	}
}

// runGood shows that the node's unchanged configuration is no crash, and leaves state of an earlier run behind as
// on a real node.
func runGood(ctx context.Context, t *testing.T, node *nodetier.Node) {
	t.Helper()
	config, err := node.Config(nil)
	if err != nil {
		t.Fatal(err)
	}
	kubelet, err := node.Kubelet(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := kubelet.Start(ctx); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if state, err := kubelet.Wait(short); err == nil {
		t.Fatalf("the kubelet ended with a good configuration: %s", state)
	}
	if err := kubelet.Kill(); err != nil {
		t.Fatal(err)
	}
}
