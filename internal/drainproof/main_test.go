// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
)

// bare is an API server without controllers: budgets keep the status that a test gives them.
var bare testenv.Shared

// shared is a cluster without kubelets, with an audit log of what drains write. Its nodes may be silent for as long as a test takes.
var shared = testenv.Shared{Options: testenv.Options{
	With:        []testenv.Component{testenv.ControllerManager, testenv.Scheduler},
	AuditPolicy: auditPolicy,
	Args: map[testenv.Component][]string{
		testenv.ControllerManager: {"--node-monitor-grace-period=30m", "--kube-api-qps=500", "--kube-api-burst=500"},
		testenv.Scheduler:         {"--kube-api-qps=500", "--kube-api-burst=500"},
	},
}}

// runner is what testenv.Shared wants to run.
type runner func() int

func (r runner) Run() int { return r() }

func TestMain(m *testing.M) {
	if file := os.Getenv(childEnv); file != "" {
		os.Exit(childMain(file))
	}
	os.Exit(bare.Main(runner(func() int { return shared.Main(m) })))
}

// whole reports whether nothing of the long proofs is left out: make drain-proof says so in the environment.
func whole() bool { return os.Getenv("BELAY_DRAIN_PROOF") != "" }

// patience bounds each wait for the servers. It is short on a mutant, which is mostly caught by waiting in vain.
func patience() time.Duration {
	if os.Getenv("BELAY_MUTANT") != "" {
		return 15 * time.Second
	}
	return time.Minute
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until calls done until it returns nil, or ctx ends, and then returns done's error.
func until(ctx context.Context, done func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience())
	defer cancel()
	pace := testproc.NewPace()
	for {
		err := done()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-pace.Next():
		}
	}
}

// eventually fails the test where until returns an error; rule is what the test protects.
func eventually(t *testing.T, rule string, done func() error) {
	t.Helper()
	if err := until(t.Context(), done); err != nil {
		t.Fatalf("%s: after %s: %v", rule, patience(), err)
	}
}

func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

// seedEnv replays a random test.
const seedEnv = "BELAY_DRAIN_SEED"

// seedFor chooses the seed of a random test, and says how to have it again.
func seedFor(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("%s=%d replays this run", seedEnv, seed)
	return seed
}
