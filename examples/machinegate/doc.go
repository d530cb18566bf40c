// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command machinegate says before a change of machines is applied what it would break: quorum, the control plane, the last of a role, data that is on one machine
// alone. It reads files and asks nobody, so that it can stand in a pipeline.
//
//	machinegate --before DIR --after DIR [-o text|json] [--as GATE=SEVERITY]
//
// --before is what is, as kubectl get -o yaml writes it:
//
//	kubectl get machines,machinesets,machinedeployments,nodes,persistentvolumes,pods -A -o yaml > before/all.yaml
//
// --after is what the change wants: the manifests that are to be applied. Of both, every *.yaml, *.yml and *.json counts, several documents in one and Lists
// included. Kinds that it does not know are left out, but for those of the group belay.dev. Who is a member of the cluster's own store is one more document
// in --before, written from what etcdctl says; without it no machine that may run a member can end:
//
//	apiVersion: machinegate.belay.dev/v1
//	kind: Members
//	members:
//	- {name: etcd-0, machine: fleet/c0, healthy: true}
//
// # What ends
//
//   - A machine that is entered for its end by spec.decommission in --after and was not in --before.
//   - One that is not in --after any more and was entered in --before: it is going to be deleted.
//   - Those that a MachineSet or MachineDeployment with fewer replicas would choose, by their own status.
//
// All that end are judged together. A machine that is missing from --after and was not entered is Unreferenced: it is reported, and never deleted for
// it, and neither are the machines of a set that is missing.
//
// # Verdicts
//
// Each machine is accepted, warned of or rejected, with the reasons. --as LocalData=Warn takes the findings of a gate for something else: Warn, Block or
// Ignore. The gates are those of package machine.
//
// # Exit codes
//
//	0  nothing is rejected
//	1  something is rejected
//	2  the command line or a file is wrong; nothing was judged
//
// This file and its neighbours only join public packages: they are meant to be copied.
package main
