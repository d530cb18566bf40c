// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest_test

import (
	"os"
	"testing"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/binaries"
)

// shared is a control plane of Kubernetes 1.37 with the EvictionRequest API, without an evictionrequest-controller: its
// controller manager has none.
var shared testenv.Shared

func TestMain(m *testing.M) {
	shared.Options.With = []testenv.Component{testenv.ControllerManager}
	shared.Options.Args = map[testenv.Component][]string{
		testenv.ControllerManager: {"--controllers=disruption-controller,garbage-collector-controller"},
	}
	switch os.Getenv(binaries.ReleaseVariable) {
	case "1.34", "1.35", "1.36": // they do not know the feature gate
	default:
		shared.Options.Args[testenv.APIServer] = []string{
			"--feature-gates=EvictionRequestAPI=true,GenericWorkload=true",
			"--runtime-config=lifecycle.k8s.io/v1alpha1=true",
		}
	}
	os.Exit(shared.Main(m))
}
