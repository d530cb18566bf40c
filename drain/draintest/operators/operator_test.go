// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain/draintest/operators"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/testenv"
)

// shared has the disruption controller and no other: owners and kubelets are the suite's.
var shared = testenv.Shared{Options: testenv.Options{
	With: []testenv.Component{testenv.ControllerManager},
	Args: map[testenv.Component][]string{testenv.ControllerManager: {"--controllers=disruption-controller"}},
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// patience is how long a drain may take on a busy machine.
const patience = 3 * time.Minute

// TestEveryOperatorMovesItsPods drains a node of each operator with the zero policy: each acts on an eviction or on the
// cordon, and no pod leaves before its operator lets it.
func TestEveryOperatorMovesItsPods(t *testing.T) {
	env := shared.Env(t)
	all := operators.List()
	rows, errs := make([]operators.Row, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, operator := range all { // they wait most of the time, so that they run side by side
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			rows[i], errs[i] = operator.Run(ctx, env.Config(), drainNode)
		})
	}
	wg.Wait()
	for i, operator := range all {
		t.Run(operator.Name, func(t *testing.T) {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			row := rows[i]
			if !row.Drained || row.Deleted != 0 || len(row.Broken) != 0 {
				t.Errorf("the run is %+v, want a drained node without deletions and broken promises", row)
			}
			if row.Sent == 0 {
				t.Error("no eviction was sent")
			}
		})
	}
	if err := operators.WriteTable(t.Output(), rows); err != nil {
		t.Error(err)
	}
}

func drainNode(ctx context.Context, config *rest.Config, node string) error {
	_, err := kube.DrainNode(ctx, config, node, kube.DrainOptions{})
	return err
}

// TestRunSaysWhatIsMissing shows the error for a zero Operator.
func TestRunSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := (operators.Operator{}).Run(t.Context(), nil, nil); err == nil {
		t.Error("a zero Operator ran")
	}
}
