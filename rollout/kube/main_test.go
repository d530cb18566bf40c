// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"os"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/belayproject/belay/internal/testenv"
)

// With the garbage collector. The nodes of these tests have no kubelets: they stay as ready as they were made, however long a test takes.
var shared = testenv.Shared{Options: testenv.Options{
	With: []testenv.Component{testenv.ControllerManager},
	Args: map[testenv.Component][]string{testenv.ControllerManager: {"--node-monitor-grace-period=30m"}},
}}

func TestMain(m *testing.M) {
	// The second one pauses after an error, by a time that it keeps for the whole process: after an error in a bubble, whose time is another, an informer
	// of another test would be held up for as long as the two are apart.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // it has no other switch
	os.Exit(shared.Main(m))
}
