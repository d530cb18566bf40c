// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command drain empties nodes for maintenance: like kubectl drain, for one node or many, with a reason for every pod that stays.
//
//	drain NODE... | --selector S   cordons the nodes, evicts their pods, and leaves them cordoned and marked with the holder
//	drain cordon|uncordon NODE...  does what kubectl does; an uncordon ends the mark of this holder too
//	drain plan NODE...             says what that would do with each pod and why, and sends nothing that writes
//	drain release NODE...          gives nodes back: the last holder out uncordons those that were schedulable before
//	drain hold NODE... --for 30m   lets nodes go without their kubelet for a time, without losing their pods
//	drain resume                   ends the freeze after a node that came back has gone bad
//
// On a terminal it shows the nodes, and the pods that don't leave with their reason, budget, since when, and what comes next. On a
// pipe it writes one line for each change. With -o json, standard output holds the final status alone.
//
// # What is as in kubectl drain, and what is not
//
// The arguments NODE, node/NODE and --selector, and the flags --pod-selector, --delete-emptydir-data, --force,
// --grace-period, --timeout, --disable-eviction, --skip-wait-for-delete-timeout and --dry-run=none|client|server mean
// what they mean there. So do the connection flags: --kubeconfig, --context, --cluster, --user, --server, --token,
// --as, --as-group, --request-timeout, --certificate-authority and the others of k8s.io/cli-runtime, and -v. On the
// PATH as kubectl-belay-drain, the program is "kubectl belay drain". An API server that does not answer is an error
// at once, with its cause. The differences are:
//
//   - A pod that may not be evicted stays, alone: all others leave, and the drain waits for somebody to act on it until --timeout.
//     Without --timeout it waits for ever, and says so.
//   - --ignore-daemonsets is always on. A policy with daemonSets: Last evicts their pods after all others.
//   - --grace-period=0 is refused: it kills, and lets a replacement run beside a process that nobody has seen end.
//   - --timeout is for all nodes together.
//   - --disable-eviction deletes by UID, and says that every pod was deleted past its budget. --escalate delete=10m
//     asks first, announces the deletion with its time, and then deletes.
//   - --skip-wait-for-delete-timeout names the pods that were not waited for.
//   - --dry-run=client is the plan, which counts for all nodes together what each budget allows; without a value it
//     is the same. With --dry-run=server the API server judges the cordon and each eviction that the plan would send
//     now, and what it refuses is blocked.
//   - --chunk-size, --namespace and --cache-dir have no effect, and a note on standard error says so.
//   - A pod that names a responder in its annotation drain.belay.dev/hooks stays, until --responder says that pods of that name evacuate
//     themselves: package drain/kube says how they are asked and how they answer. "drain release" takes the requests back by itself.
//   - One node is drained at a time, unless --max-nodes allows more, as a number or as a percent of the given nodes. All
//     of them are cordoned first, so that each pod moves once; --leave-open leaves those that wait schedulable. A node on
//     which none but blocked pods are left gives its turn to the next, and --node-timeout bounds each node.
//   - Ctrl-C gives the nodes back as they were found.
//
// # Policy
//
// --policy names a file with a drain.Policy in YAML, with durations as in Go:
//
//	rules:
//	- {name: databases last, ownerKinds: [StatefulSet], tier: 10}
//	- {name: let batch end, selector: {matchLabels: {kind: batch}}, behavior: WaitCompleted, deadline: 2h}
//	localData: Evict
//	escalation:
//	- {after: 30m, step: Delete, gracePeriodSeconds: 30}
//
// # Exit codes
//
//	0  done: drained, held to the end or given back; for a plan: every pod can leave
//	1  an error, or interrupted twice; what is left behind is listed
//	2  the command line or the policy file is wrong; nothing was done
//	3  blocked: at least one pod stays until somebody acts, or --timeout has passed
//	4  interrupted: the nodes were given back as they were found
//
// # Rights
//
// Those that package drain/kube lists: list and watch on nodes, pods, poddisruptionbudgets and daemonsets, patch on nodes, create on
// pods/eviction; delete on pods for --escalate and --disable-eviction, patch on pods for --responder; get and update
// on leases in kube-node-lease for hold; patch on nodes/status for --node-conditions; list and watch on namespaces for
// rules with a namespaceSelector. A plan needs only list and watch, with --dry-run=server the rest too; cordon
// and uncordon need get and patch on nodes, with --selector list.
//
// Package app is the same as a command, with options: a main of your own takes it with parts of your own.
package main
