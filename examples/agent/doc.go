// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command agent gives a kubelet a config from the API server, keeps the last known good one, and goes back to it by itself.
//
//	agent run --node-name N --kubeconfig K --state-dir D --init-config F --render P -- /usr/bin/kubelet --config=P …
//
// It supervises the kubelet: before each start it decides from disk alone which config is used, says so in the ConfigOK condition
// of the node, and renders it. A new config is on trial until it was healthy long enough; one that is wrong, or makes the kubelet
// crash, is rejected, with the API server up or down.
//
// A kubelet whose config file belongs to kubeadm keeps it: with --config-dir the config goes into one drop-in, 90-belay.conf, which is taken
// away again when the node goes back to its own config. What is judged is what the kubelet makes of both.
//
//	agent run … --init-config=/var/lib/kubelet/config.yaml --config-dir=D -- /usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --config-dir=D …
//
// It takes part in rollouts, if it is asked to: with --source=shadow the orders of the node's NodeShadow drive which config is adopted,
// with --hooks=DIR they drive the programs of a directory, which update the operating system or the kubelet and may boot the node.
//
//	agent update --node-name N --state-dir D --hooks DIR
//
// does the latter alone and supervises nothing, for a pod of a DaemonSet (see ../manifests/agent) or a host whose kubelet has a unit of its own.
// With --lease-namespace a node has one agent: a second one is told who the first is, and takes no part. With --guard-policy nothing is
// followed unless the API server holds agents to their own nodes. In both cases a supervised kubelet goes on; an agent without one ends with an
// error. See docs/agent-rollouts.md and docs/agent-guard.md.
//
//	agent status       which config is in use and why, what was rejected, what the next start would do
//	agent explain      the same, where each field of the config comes from, and what has happened
//	agent doctor       what keeps this node from its config, and what helps: flags, state directory, unit, clock, API server, rights
//	agent forget-bad   takes back a rejection
//	agent use-local    goes back to the config that the node was provisioned with
//	agent configmap    makes an immutable ConfigMap of a config
//	agent sign         adds a signature to it, for nodes that ask for one with --trusted-keys
//	agent check        judges a config without a node
//	agent guard        ExecStartPre of the unit: counts the start and puts its config in place, also where the agent itself dies at once
//	agent stopping     ExecStop of the unit: a stop was asked for
//	agent ended        ExecStopPost of the unit: how the agent ended, for the next start to go by
//
// The agent stops the kubelet when it is stopped, and the kernel kills the kubelet when the agent is killed: under systemd the
// agent's unit takes the place of the kubelet's, with Restart=always (see systemd/belay-agent.service).
//
// Package app is the same as a command, with options: a main of your own takes it with parts of your own.
package main
