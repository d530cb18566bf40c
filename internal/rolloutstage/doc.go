// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rolloutstage is where rollouts are proven and measured: a real control plane with kube-controller-manager, kube-scheduler and kwok, nodes
// with work on them, their agents in this process, and controllers in processes of their own, which are killed and frozen as processes are.
//
// A program or test binary that makes a [Fleet] has to call [Main] first: its own executable is what a controller's process runs.
//
//	if code, child := rolloutstage.Main(); child {
//		os.Exit(code)
//	}
package rolloutstage
