// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API in which machines are kept: what is wanted of each, and what is known of it.
//
// A [Machine] is one machine, for whatever provider: the provider's own part of its spec is stored as it is. A [MachineSet] keeps a number of equal
// machines, a [MachineDeployment] brings them from one template to the next, a [MachineHealthCheck] mends or replaces those that are unhealthy. All
// are namespaced.
//
// What they mean is decided by package machine, which knows nothing of an API server. The method Core of each kind makes what package machine sees of an
// object, SetCore makes an object of that, and SetStatus stores what has become known, with conditions for whoever waits for one. Conditions are
// never read back.
//
// # Promise
//
// Nothing that package machine knows is lost on the way there and back, but for times below a second and for texts longer than [MaxMessage]. Times come back
// in UTC. The same status written again is the same: who compares objects has nothing to write. What others have put on an object stays.
//
// spec.providerConfig is neither read, nor changed, nor defaulted. The API server stores JSON in one form, with sorted keys and without white space, and
// returns the same bytes whoever has written them; YAML files that are read with sigs.k8s.io/yaml give the same, so that a digest stays when a
// machine moves into a cluster. Numbers that do not fit into 64 bits are rounded by the server: write them as text.
//
// The API server itself enforces, on every write and by whomever:
//
//   - The instance of a Machine has the token of its status: spec.providerID is set once for each, and never removed. The token stays as long as the
//     incarnation, which never decreases. What a Machine adopts never changes.
//   - Selectors of sets and deployments never change, and select what their template makes. Templates can't name what belongs to one machine.
//   - Durations, amounts, versions, roles, taints and hooks are such as make sense; the message of a refusal says what would.
//
// The kinds have the shape that the cluster-autoscaler works with, unmodified: its provider "clusterapi" with CAPI_GROUP=belay.dev. Its keys are constants
// here and in package machine. status.failureReason and status.failureMessage are there if, and only if, the phase is Failed, because it takes
// any machine that has them for one that will not become a Node.
//
// Fields are only added, never renamed or given another meaning.
//
// # No promise
//
// The server does not check keys of labels and annotations in a spec, nor that a Secret exists; Core checks the former. It sees one object at a time: that a
// ProviderID is not that of two machines is for the controller to notice. There are no short names, as those that come to mind belong to
// other groups: kubectl get machines.belay.dev, or kubectl get belay for all kinds.
//
// # Where things are
//
// The objects may be in another cluster than the Nodes that come of them; nothing in them says which. A NodeRef names a Node of the workload cluster, a
// SecretRef a Secret beside the Machine: a boot script, a token or credentials are in a Machine by such a name alone. The configuration of the kubelet
// is there by reference too, as spec.configSource, which becomes that of a NodeConfig of package configsync. The address of the workload API is no
// field: the controller knows it. Packages that the API has no field for, as a kernel, have their version in spec.versions.other.
//
// # The manifests
//
// [CRDs] returns the CustomResourceDefinitions for this version of the package, as YAML.
//
// # Concurrency and crash behaviour
//
// Types are plain data: copy them with DeepCopy before sharing. What Core returns shares nothing with the object. Nothing here is persisted.
//
// +kubebuilder:object:generate=true
// +groupName=belay.dev
package v1alpha1
