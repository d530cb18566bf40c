// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeletpayload

import (
	"math"
	"net/netip"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A rule looks at one part of a config.
type rule func(c *Config, p *Problems)

// rules are all rules for any config of a node, the local one included, in the order in which their errors are listed.
func rules() []rule {
	return []rule{
		kind, endpoints, clusterDNS, podLimits, rates, images, durations, shutdown, eviction, reserved, policies, host, logs,
	}
}

// kind stands for documents that did not come through the codec: it says what the codec says.
func kind(c *Config, p *Problems) {
	p.need(c.APIVersion == APIVersion, "apiVersion", "must be "+strconv.Quote(APIVersion))
	p.need(c.Kind == Kind, "kind", "must be "+strconv.Quote(Kind))
}

func endpoints(c *Config, p *Problems) {
	between(p, "port", c.Port, 0, math.MaxUint16)
	between(p, "readOnlyPort", c.ReadOnlyPort, 0, math.MaxUint16)
	optional(p, "healthzPort", c.HealthzPort, 0, math.MaxUint16)
	ip(p, "address", c.Address)
	ip(p, "healthzBindAddress", c.HealthzBindAddress)
	used := map[int32]string{}
	for _, e := range []struct {
		field string
		port  int32
	}{
		{"port", port(c.Port, 10250)}, {"readOnlyPort", c.ReadOnlyPort}, {"healthzPort", valueOr(c.HealthzPort, defaultHealthzPort)},
	} {
		other, taken := used[e.port]
		p.need(e.port == 0 || !taken, e.field, "must differ from "+other)
		used[e.port] = e.field
	}
}

// port gives the kubelet's default for 0.
func port(v, def int32) int32 {
	if v == 0 {
		return def
	}
	return v
}

// ip checks an address; empty means the kubelet's default.
func ip(p *Problems, field, v string) {
	_, err := netip.ParseAddr(v)
	p.need(v == "" || err == nil, field, "must be an IP address")
}

func clusterDNS(c *Config, p *Problems) {
	for i, v := range c.ClusterDNS {
		_, err := netip.ParseAddr(v)
		p.need(err == nil, index("clusterDNS", i), "must be an IP address")
	}
}

// index is the path of an element.
func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// key is the path of a map entry.
func key(field, k string) string { return field + "[" + k + "]" }

func podLimits(c *Config, p *Problems) {
	atLeast(p, "maxPods", c.MaxPods, 0)
	atLeast(p, "podsPerCore", c.PodsPerCore, 0)
	if c.PodPidsLimit != nil {
		p.need(*c.PodPidsLimit > 0 || *c.PodPidsLimit == -1, "podPidsLimit", "must be positive, or -1 for the node's own limit")
	}
	atLeast(p, "maxOpenFiles", c.MaxOpenFiles, 0)
	atLeast(p, "nodeLeaseDurationSeconds", c.NodeLeaseDurationSeconds, 0)
	optionalAtLeast(p, "nodeStatusMaxImages", c.NodeStatusMaxImages, -1)
	p.need(!c.RunOnce, "runOnce", "must be false: the kubelet no longer has that mode")
}

func rates(c *Config, p *Problems) {
	optionalAtLeast(p, "registryPullQPS", c.RegistryPullQPS, 0)
	optionalAtLeast(p, "eventRecordQPS", c.EventRecordQPS, 0)
	optionalAtLeast(p, "kubeAPIQPS", c.KubeAPIQPS, 0)
	atLeast(p, "registryBurst", c.RegistryBurst, 0)
	atLeast(p, "eventBurst", c.EventBurst, 0)
	atLeast(p, "kubeAPIBurst", c.KubeAPIBurst, 0)
}

func images(c *Config, p *Problems) {
	optional(p, "imageGCHighThresholdPercent", c.ImageGCHighThresholdPercent, 0, 100)
	optional(p, "imageGCLowThresholdPercent", c.ImageGCLowThresholdPercent, 0, 100)
	low, high := valueOr(c.ImageGCLowThresholdPercent, 80), valueOr(c.ImageGCHighThresholdPercent, 85)
	p.need(low < high, "imageGCLowThresholdPercent", "must be less than imageGCHighThresholdPercent (defaults: 80 and 85)")
	oldest, youngest := c.ImageMaximumGCAge.Duration, c.ImageMinimumGCAge.Duration
	if youngest == 0 {
		youngest = 2 * time.Minute
	}
	p.need(oldest <= 0 || oldest > youngest, "imageMaximumGCAge", "must be more than imageMinimumGCAge (default: 2m)")
	optionalAtLeast(p, "maxParallelImagePulls", c.MaxParallelImagePulls, 1)
	serial := valueOr(c.SerializeImagePulls, false) && valueOr(c.MaxParallelImagePulls, 1) > 1
	p.need(!serial, "maxParallelImagePulls", "must not be more than 1 with serializeImagePulls: true")
}

// durations are those for which a negative value has no meaning to the kubelet; zero means its default.
func durations(c *Config, p *Problems) {
	for _, d := range []struct {
		field string
		v     metav1.Duration
	}{
		{"syncFrequency", c.SyncFrequency},
		{"fileCheckFrequency", c.FileCheckFrequency},
		{"httpCheckFrequency", c.HTTPCheckFrequency},
		{"streamingConnectionIdleTimeout", c.StreamingConnectionIdleTimeout},
		{"nodeStatusUpdateFrequency", c.NodeStatusUpdateFrequency},
		{"nodeStatusReportFrequency", c.NodeStatusReportFrequency},
		{"imageMinimumGCAge", c.ImageMinimumGCAge},
		{"imageMaximumGCAge", c.ImageMaximumGCAge},
		{"cpuManagerReconcilePeriod", c.CPUManagerReconcilePeriod},
		{"runtimeRequestTimeout", c.RuntimeRequestTimeout},
		{"evictionPressureTransitionPeriod", c.EvictionPressureTransitionPeriod},
		{"authentication.webhook.cacheTTL", c.Authentication.Webhook.CacheTTL},
		{"authorization.webhook.cacheAuthorizedTTL", c.Authorization.Webhook.CacheAuthorizedTTL},
		{"authorization.webhook.cacheUnauthorizedTTL", c.Authorization.Webhook.CacheUnauthorizedTTL},
	} {
		p.need(d.v.Duration >= 0, d.field, "must not be negative")
	}
}

func shutdown(c *Config, p *Problems) {
	all, critical := c.ShutdownGracePeriod.Duration, c.ShutdownGracePeriodCriticalPods.Duration
	p.need(all == 0 || all >= time.Second, "shutdownGracePeriod", "must be 0 or at least 1s")
	p.need(critical == 0 || critical >= time.Second, "shutdownGracePeriodCriticalPods", "must be 0 or at least 1s")
	p.need(critical <= all, "shutdownGracePeriodCriticalPods", "must not be more than shutdownGracePeriod")
	both := len(c.ShutdownGracePeriodByPodPriority) > 0 && (all > 0 || critical > 0)
	p.need(!both, "shutdownGracePeriodByPodPriority", "must not be set together with shutdownGracePeriod")
}
