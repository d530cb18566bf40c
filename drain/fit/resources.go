// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// amounts are of resources: thousandths of a CPU, and of the others what their unit is. The number of pods is one of
// them.
type amounts map[corev1.ResourceName]int64

func amountOf(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

func amountsOf(list corev1.ResourceList) amounts {
	a := make(amounts, len(list))
	for name, q := range list {
		a[name] = amountOf(name, q)
	}
	return a
}

func allocatableOf(node *corev1.Node) amounts { return amountsOf(node.Status.Allocatable) }

func (a amounts) addAmounts(b amounts) {
	for name, amount := range b {
		a[name] += amount
	}
}

func (a amounts) subtractAmounts(b amounts) {
	for name, amount := range b {
		a[name] -= amount
	}
}

func (a amounts) raiseAmounts(b amounts) {
	for name, amount := range b {
		a[name] = max(a[name], amount)
	}
}

// exceedFree says, in the scheduler's words, which amounts are more than what is free.
func (a amounts) exceedFree(free amounts) []string {
	var reasons []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		switch {
		case a[name] <= 0 || a[name] <= free[name]:
		case name == corev1.ResourcePods:
			reasons = append(reasons, "Too many pods")
		default:
			reasons = append(reasons, "Insufficient "+string(name))
		}
	}
	return reasons
}

// requestOf is what a pod asks of a Node: the sum of its containers and sidecars, or what its init containers need at a
// time if that is more; the requests of the pod itself in place of both; and its overhead.
func requestOf(pod *corev1.Pod) amounts {
	sum := amounts{}
	for i := range pod.Spec.Containers {
		sum.addAmounts(amountsOf(pod.Spec.Containers[i].Resources.Requests))
	}
	sidecars, peak := amounts{}, amounts{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		request := amountsOf(c.Resources.Requests)
		if isSidecar(c) {
			sum.addAmounts(request)
			sidecars.addAmounts(request)
			request = sidecars
		} else {
			request.addAmounts(sidecars)
		}
		peak.raiseAmounts(request)
	}
	sum.raiseAmounts(peak)
	if whole := pod.Spec.Resources; whole != nil {
		maps.Copy(sum, amountsOf(whole.Requests))
	}
	sum.addAmounts(amountsOf(pod.Spec.Overhead))
	sum[corev1.ResourcePods] = 1
	return sum
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// roomFor is the share of a Node's CPU and memory that is free after the request, for a choice as the scheduler's.
func roomFor(request amounts, n *nodeState) float64 {
	room, all := 0.0, allocatableOf(n.node)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if all[name] > 0 {
			room += float64(n.free[name]-request[name]) / float64(all[name])
		}
	}
	return room
}

// A hostPort is a port of a Node that a pod takes.
type hostPort struct {
	protocol corev1.Protocol
	ip       string
	port     int32
}

func hostPortsOf(pod *corev1.Pod) []hostPort {
	var ports []hostPort
	collect := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			port := hostPort{protocol: p.Protocol, ip: p.HostIP, port: p.HostPort}
			if port.protocol == "" {
				port.protocol = corev1.ProtocolTCP
			}
			ports = append(ports, port)
		}
	}
	for i := range pod.Spec.Containers {
		collect(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; isSidecar(c) {
			collect(c)
		}
	}
	return ports
}

// conflictsWith reports whether two pods cannot both have their port on a Node. Without an address a port is taken on
// all of them.
func (p hostPort) conflictsWith(other hostPort) bool {
	if p.protocol != other.protocol || p.port != other.port {
		return false
	}
	return isWildcard(p.ip) || isWildcard(other.ip) || p.ip == other.ip
}

func isWildcard(ip string) bool { return ip == "" || strings.Trim(ip, "0.") == "" }

// checkPorts looks for the host ports of the pod.
func checkPorts(f *filter, n *nodeState) string {
	for _, port := range f.ports {
		if slices.ContainsFunc(n.ports, port.conflictsWith) {
			return "node(s) didn't have free ports for the requested pod ports"
		}
	}
	return ""
}
