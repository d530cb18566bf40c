// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// What the cluster-autoscaler reads, with its provider "clusterapi" and CAPI_GROUP=belay.dev in its environment. Other keys that it has are constants of
// package machine: DeleteAnnotation, which it writes, and RevisionAnnotation, PausedAnnotation and DeploymentLabel, which are the same for any group.
const (
	// MinSizeAnnotation and MaxSizeAnnotation, on a MachineDeployment or a MachineSet that belongs to none, make it a node group, with numbers as "0" and
	// "10".
	MinSizeAnnotation = "belay.dev/cluster-api-autoscaler-node-group-min-size"
	MaxSizeAnnotation = "belay.dev/cluster-api-autoscaler-node-group-max-size"
	// ClusterNameLabel is by what it tells the node groups of one cluster from those of others.
	ClusterNameLabel = "belay.dev/cluster-name"
)

// What a Node of an empty node group would have, on the MachineDeployment or MachineSet. With CPU and memory, it is scaled from zero.
const (
	CPUCapacityAnnotation     = "capacity.cluster-autoscaler.kubernetes.io/cpu"
	MemoryCapacityAnnotation  = "capacity.cluster-autoscaler.kubernetes.io/memory"
	DiskCapacityAnnotation    = "capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk"
	PodsCapacityAnnotation    = "capacity.cluster-autoscaler.kubernetes.io/maxPods"
	GPUTypeCapacityAnnotation = "capacity.cluster-autoscaler.kubernetes.io/gpu-type"
	GPUCapacityAnnotation     = "capacity.cluster-autoscaler.kubernetes.io/gpu-count"
	// LabelsCapacityAnnotation has "key=value,key=value", and TaintsCapacityAnnotation "key=value:NoSchedule,key=value:NoExecute".
	LabelsCapacityAnnotation = "capacity.cluster-autoscaler.kubernetes.io/labels"
	TaintsCapacityAnnotation = "capacity.cluster-autoscaler.kubernetes.io/taints"
)
