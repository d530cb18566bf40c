// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest_test

import (
	"os"
	"testing"

	"github.com/belayproject/belay/internal/testenv"
)

// shared is a control plane of Kubernetes 1.37 with the EvictionRequest API, without an evictionrequest-controller: its
// controller manager has none.
var shared = testenv.Shared{Options: testenv.Options{
	With: []testenv.Component{testenv.ControllerManager},
	Args: map[testenv.Component][]string{
		testenv.APIServer: {
			"--feature-gates=EvictionRequestAPI=true,GenericWorkload=true",
			"--runtime-config=lifecycle.k8s.io/v1alpha1=true,scheduling.k8s.io/v1alpha3=true",
		},
		testenv.ControllerManager: {"--controllers=disruption-controller,garbage-collector-controller"},
	},
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
