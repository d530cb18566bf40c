// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controller is the reference controller of a fleet: it carries out the Rollouts of disruption domains, draining nodes within
// every PodDisruptionBudget.
//
//	controller --domains default --namespace belay-system [--kubeconfig FILE] [--drain-policy FILE]
//
// Any number of replicas may run. For each domain one of them leads, by a Lease in --namespace, and the others wait for it: SIGTERM hands the
// lead over at once, and a leader that dies is replaced after --lease-duration. Nothing rests on there being one leader only.
//
// It answers /healthz, /readyz (the cluster was seen whole, and no watch is refused) and /metrics on --listen. What it decides, and why, is in
// the status of each Rollout and in its log; events are on the edges.
//
// # The fleet page
//
// With --page-bind-address it serves a page that shows the fleet: see package page, and docs/fleet-page.md. Any replica does, leader or not, from the
// caches that it has anyway: the page takes no further right. It is off by default, and on a loopback address alone, since it asks nobody who they
// are: kubectl port-forward is the way to it.
//
// # Rights
//
// Those of rollout/kube.ControllerRules and HealthRules, of drain/kube.RBAC, on Leases in --namespace get, create, update and delete, and on
// events create and patch.
//
// # Crash behaviour
//
// It keeps nothing that it could not lose: kill it at any time.
package main
