// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeletpayload

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1beta1 "k8s.io/kubelet/config/v1beta1"
)

// policies checks the words that the kubelet knows.
func policies(c *Config, p *Problems) {
	oneOf(p, "cgroupDriver", c.CgroupDriver, "cgroupfs", "systemd")
	oneOf(p, "hairpinMode", c.HairpinMode, "promiscuous-bridge", "hairpin-veth", "none")
	oneOf(p, "cpuManagerPolicy", c.CPUManagerPolicy, "none", "static")
	oneOf(p, "memoryManagerPolicy", c.MemoryManagerPolicy, "None", "Static")
	oneOf(p, "topologyManagerPolicy", c.TopologyManagerPolicy, "none", "best-effort", "restricted", "single-numa-node")
	oneOf(p, "topologyManagerScope", c.TopologyManagerScope, "container", "pod")
	oneOf(p, "memorySwap.swapBehavior", c.MemorySwap.SwapBehavior, "NoSwap", "LimitedSwap")
	oneOf(p, "configMapAndSecretChangeDetectionStrategy", c.ConfigMapAndSecretChangeDetectionStrategy,
		v1beta1.GetChangeDetectionStrategy, v1beta1.TTLCacheChangeDetectionStrategy, v1beta1.WatchChangeDetectionStrategy)
	oneOf(p, "authorization.mode", c.Authorization.Mode,
		v1beta1.KubeletAuthorizationModeAlwaysAllow, v1beta1.KubeletAuthorizationModeWebhook)
	enforcement(c, p)
}

// enforcement checks the list of what the node allocatable is enforced on.
func enforcement(c *Config, p *Problems) {
	const field = "enforceNodeAllocatable"
	list := c.EnforceNodeAllocatable
	if list == nil {
		list = []string{defaultEnforcement}
	}
	for i, v := range list {
		at := index(field, i)
		oneOf(p, at, v, "pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible", "none")
		p.need(!slices.Contains(list[:i], v), at, "must not be listed twice")
		p.need(v != "none" || len(list) == 1, at, `must be the only one if it is "none"`)
		p.need(!strings.HasPrefix(v, "system-reserved") || c.SystemReservedCgroup != "", "systemReservedCgroup",
			"must be set, because enforceNodeAllocatable lists system-reserved")
		p.need(!strings.HasPrefix(v, "kube-reserved") || c.KubeReservedCgroup != "", "kubeReservedCgroup",
			"must be set, because enforceNodeAllocatable lists kube-reserved")
		p.need(v == "none" || valueOr(c.CgroupsPerQOS, true), "cgroupsPerQOS", "must be true, because enforceNodeAllocatable is not empty (default: pods)")
	}
}

// host checks what the kubelet sets on the machine.
func host(c *Config, p *Problems) {
	optional(p, "oomScoreAdj", c.OOMScoreAdj, -1000, 1000)
	optional(p, "iptablesMasqueradeBit", c.IPTablesMasqueradeBit, 0, 31)
	optional(p, "iptablesDropBit", c.IPTablesDropBit, 0, 31)
	p.need(c.SystemCgroups == "" || c.CgroupRoot != "", "cgroupRoot", "must be set, because systemCgroups is")
	p.need(c.ReservedSystemCPUs == "" || c.SystemReservedCgroup == "" && c.KubeReservedCgroup == "", "reservedSystemCPUs",
		"must not be set together with systemReservedCgroup or kubeReservedCgroup")
	if c.CPUCFSQuotaPeriod != nil {
		between(p, "cpuCFSQuotaPeriod", c.CPUCFSQuotaPeriod.Duration, time.Millisecond, time.Second)
	}
	if f := c.MemoryThrottlingFactor; f != nil {
		p.need(*f > 0 && *f <= 1, "memoryThrottlingFactor", "must be more than 0 and at most 1")
	}
	if d := c.CrashLoopBackOff.MaxContainerRestartPeriod; d != nil {
		between(p, "crashLoopBackOff.maxContainerRestartPeriod", d.Duration, time.Second, 5*time.Minute)
	}
	absolute(p, "staticPodPath", c.StaticPodPath)
	absolute(p, "tlsCertFile", c.TLSCertFile)
	absolute(p, "tlsPrivateKeyFile", c.TLSPrivateKeyFile)
	absolute(p, "authentication.x509.clientCAFile", c.Authentication.X509.ClientCAFile)
}

// absolute checks a file name. The kubelet takes a relative one from the directory of the file that it reads, which is the
// agent's and not the author's.
func absolute(p *Problems, field, v string) {
	p.need(v == "" || filepath.IsAbs(v), field, "must be an absolute path")
}

func logs(c *Config, p *Problems) {
	p.need(c.ContainerLogMaxSize == "" || quantity(c.ContainerLogMaxSize, 1), "containerLogMaxSize",
		`must be a positive quantity, such as "10Mi"`)
	optionalAtLeast(p, "containerLogMaxFiles", c.ContainerLogMaxFiles, 2)
	optionalAtLeast(p, "containerLogMaxWorkers", c.ContainerLogMaxWorkers, 1)
	if d := c.ContainerLogMonitorInterval; d != nil {
		atLeast(p, "containerLogMonitorInterval", d.Duration, 3*time.Second)
	}
	absolute(p, "podLogsDir", c.PodLogsDir)
	oneOf(p, "logging.format", c.Logging.Format, "text", "json")
}
