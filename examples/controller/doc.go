// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controller is the reference controller of a fleet: it carries out the Rollouts of disruption domains, draining nodes within
// every PodDisruptionBudget. Where it is told to, it looks after machines, and after the Leases of agents.
//
//	controller --domains default --namespace belay-system [--kubeconfig FILE] [--drain-policy FILE]
//
// Any number of replicas may run. For each domain one of them leads, by a Lease in --namespace, and the others wait for it: SIGTERM hands the
// lead over at once, and a leader that dies is replaced after --lease-duration: that of the leader or of the one that
// waits, whichever is longer. Nothing rests on there being one leader only.
//
// It answers /healthz, /readyz (the cluster was seen whole, and no watch is refused by which rollouts are decided) and /metrics on --listen. What it decides, and why, is in
// the status of each Rollout and in its log; events are on the edges.
//
// # The switch
//
// While the ConfigMap --switch in --namespace has "true" as data.disabled, no node is begun in any domain; what is under way comes to its end. data.reason is shown
// in the status of each Rollout. Without that ConfigMap everything is on; with content that is not understood nothing is begun, and the status says what would be right:
//
//	kubectl --namespace belay-system create configmap belay-controller --from-literal disabled=true --from-literal reason="ask ada"
//
// # Machines
//
// With --machine-provider it looks after the Machines, sets, deployments and health checks of --machine-namespace: the program, of package machine/provider/exec,
// makes and deletes instances, and gets PATH and the variables that --machine-provider-env names, and no other. Nothing is done for a machine until the
// program has said what it can do; rollouts do not wait for that. Machines and rollouts share the nodes of --machine-domain: a machine takes a slot of its ledger
// before it is drained, --max-unavailable binds both together, and they drain with one policy and one rate.
//
// # Agents and configs
//
// With --agent-namespace it watches the Leases of agents there, counts who is alive, and deletes those that were silent for --agent-gc-after. It has a Lease of its
// own among them, whose renewals it has to see: while it does not, nobody is called lost, and nothing is deleted. The conditions ConfigOK of all Nodes are counted by
// every replica.
//
// # Eviction requests
//
// With --eviction-requests it does the work of Kubernetes' evictionrequest-controller and of its default responder, by
// package drain/evictionrequest, under a Lease of their own. Where the API server does not serve
// lifecycle.k8s.io/v1alpha1 it says so once and does nothing. See docs/eviction-requests.md.
//
// # The fleet page
//
// With --page-bind-address it serves a page that shows the fleet: see package page, and docs/fleet-page.md. Any replica does, leader or not, from the
// caches that it has anyway: the page takes no further right. It is off by default, and on a loopback address alone, since it asks nobody who they
// are: kubectl port-forward is the way to it. --page-name says which cluster it shows.
//
// # Rights
//
// Those of rollout/kube.ControllerRules and HealthRules, of drain/kube.RBAC, on Leases in --namespace get, create, update and delete, on the ConfigMap
// --switch there list and watch, and on events create and patch. With machines, those of machine/kube.MachineRules and GroupRules in their namespace,
// and of NodeRules and CargoRules; with agents, on Leases in their namespace get, list, watch, create, update and delete. With eviction requests, those
// of package drain/evictionrequest: examples/manifests/components/eviction-requests.
//
// # Crash behaviour
//
// It keeps nothing that it could not lose: kill it at any time.
package main
