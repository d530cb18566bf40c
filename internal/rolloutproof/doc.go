// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rolloutproof proves package rollout and its controller on a real control plane: etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler, with nodes and pods that kwok plays and agents in process. The controllers are processes of their own, so that they are killed and
// frozen as processes are. It holds nothing but tests:
//
//   - A controller that is killed before and after every write brings a rollout to the same end as one that nobody disturbs.
//   - A leader that is frozen in the middle of a write, and thawed when another one leads, breaks no cap.
package rolloutproof
