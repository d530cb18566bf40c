// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// What a kubelet reports of a node that is well used. It reports 50 images at most, as it is usually set.
const (
	nodeImages  = 50
	nodeVolumes = 20
)

// fill gives a Node the labels, annotations and status that a kubelet gives its own. The policy compares them all, so that on an empty Node its
// cost is not to be seen.
func fill(ctx context.Context, client kubernetes.Interface, n *corev1.Node) (*corev1.Node, error) {
	n = n.DeepCopy()
	n.Labels, n.Annotations = map[string]string{}, map[string]string{}
	for i := range 12 {
		n.Labels[fmt.Sprintf("topology.example.com/label-%d", i)] = fmt.Sprintf("value-%d", i)
	}
	for i := range 4 {
		n.Annotations[fmt.Sprintf("volumes.example.com/annotation-%d", i)] = fmt.Sprintf(`{"driver-%d.example.com":"%s"}`, i, n.Name)
	}
	n.Spec.PodCIDR, n.Spec.PodCIDRs, n.Spec.ProviderID = "10.0.7.0/24", []string{"10.0.7.0/24"}, "example://zone-a/"+n.Name
	n, err := client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("filling a Node: %w", err)
	}
	n.Status = reported(n.Name)
	n, err = client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("filling the status of a Node: %w", err)
	}
	return n, nil
}

// reported is a status as a kubelet writes it.
func reported(name string) corev1.NodeStatus {
	const id = "c8f5bf43-8f0c-4d8c-9d0a-1e2f3a4b5c6d"
	size := corev1.ResourceList{}
	for kind, amount := range map[corev1.ResourceName]string{
		corev1.ResourceCPU: "16", corev1.ResourceMemory: "65536Mi", corev1.ResourceEphemeralStorage: "200Gi", corev1.ResourcePods: "110",
		"hugepages-1Gi": "0", "hugepages-2Mi": "0",
	} {
		size[kind] = resource.MustParse(amount)
	}
	s := corev1.NodeStatus{
		Capacity: size, Allocatable: size,
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.0.7"}, {Type: corev1.NodeHostName, Address: name}},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: id, SystemUUID: id, BootID: id, KernelVersion: "6.12.0", OSImage: "An operating system 13", ContainerRuntimeVersion: "containerd://2.1.0",
			KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "amd64",
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
	}
	for i := range nodeImages {
		image := fmt.Sprintf("registry.example.com/team-%d/image", i)
		s.Images = append(s.Images, corev1.ContainerImage{
			Names: []string{image + "@sha256:" + strings.Repeat("0f", 32), image + ":v1.2.3"}, SizeBytes: int64(i) << 20,
		})
	}
	for i := range nodeVolumes {
		volume := corev1.UniqueVolumeName(fmt.Sprintf("kubernetes.io/csi/driver.example.com^volume-%d", i))
		s.VolumesInUse = append(s.VolumesInUse, volume)
		s.VolumesAttached = append(s.VolumesAttached, corev1.AttachedVolume{Name: volume})
	}
	for _, kind := range []corev1.NodeConditionType{
		corev1.NodeNetworkUnavailable, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady,
	} {
		at := metav1.NewTime(time.Now())
		s.Conditions = append(s.Conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: "KubeletIsContent", Message: "the kubelet has nothing to complain of",
			LastHeartbeatTime: at, LastTransitionTime: at,
		})
	}
	return s
}
