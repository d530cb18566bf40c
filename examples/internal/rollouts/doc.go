// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollouts makes what a rollout over many nodes needs in a control plane of the demo's own, asks for rollouts, and sees how far they are.
//
// The nodes are kwok's: they are Ready, their pods run and end, and nobody else is there. On them is work with a budget.
package rollouts
