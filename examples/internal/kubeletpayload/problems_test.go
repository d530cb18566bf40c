// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeletpayload

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
)

// good is a config that sets much and keeps every rule.
func good() *Config {
	return &Config{
		TypeMeta:                    metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Port:                        10250,
		HealthzPort:                 ptr.To[int32](10248),
		HealthzBindAddress:          "127.0.0.1",
		ClusterDNS:                  []string{"10.96.0.10", "fd00::a"},
		ClusterDomain:               "cluster.local",
		CgroupDriver:                "systemd",
		MaxPods:                     110,
		ImageGCHighThresholdPercent: ptr.To[int32](90),
		ImageGCLowThresholdPercent:  ptr.To[int32](70),
		EvictionHard:                map[string]string{"memory.available": "100Mi", "nodefs.available": "10%"},
		EvictionSoft:                map[string]string{"memory.available": "300Mi"},
		EvictionSoftGracePeriod:     map[string]string{"memory.available": "90s"},
		SystemReserved:              map[string]string{"cpu": "200m", "memory": "1Gi"},
		EnforceNodeAllocatable:      []string{"pods"},
		ShutdownGracePeriod:         duration(30 * time.Second),
		RegisterWithTaints:          []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}},
		StaticPodPath:               "/etc/kubernetes/manifests",
	}
}

func duration(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

// breakage is one way to spoil a good config.
type breakage struct {
	name   string
	spoil  func(c *Config)
	fields []string // all that must be named, in order
}

func breakages() []breakage {
	set := func(name string, spoil func(c *Config), fields ...string) breakage {
		if len(fields) == 0 {
			fields = []string{name}
		}
		return breakage{name, spoil, fields}
	}
	return []breakage{
		set("apiVersion", func(c *Config) { c.APIVersion = "kubelet.config.k8s.io/v1" }),
		set("kind", func(c *Config) { c.Kind = "KubeProxyConfiguration" }),
		set("port", func(c *Config) { c.Port = 70000 }),
		set("readOnlyPort", func(c *Config) { c.ReadOnlyPort = -1 }),
		set("healthzPort", func(c *Config) { c.HealthzPort = ptr.To[int32](-1) }),
		set("same port twice", func(c *Config) { c.HealthzPort = ptr.To[int32](10250) }, "healthzPort"),
		set("address", func(c *Config) { c.Address = "localhost" }),
		set("healthzBindAddress", func(c *Config) { c.HealthzBindAddress = "127.0.0.256" }),
		set("clusterDNS[1]", func(c *Config) { c.ClusterDNS[1] = "dns.example" }),
		set("maxPods", func(c *Config) { c.MaxPods = -1 }),
		set("podsPerCore", func(c *Config) { c.PodsPerCore = -1 }),
		set("podPidsLimit", func(c *Config) { c.PodPidsLimit = ptr.To[int64](0) }),
		set("runOnce", func(c *Config) { c.RunOnce = true }),
		set("registryPullQPS", func(c *Config) { c.RegistryPullQPS = ptr.To[int32](-1) }),
		set("kubeAPIBurst", func(c *Config) { c.KubeAPIBurst = -1 }),
		set("low over high", func(c *Config) { c.ImageGCLowThresholdPercent = ptr.To[int32](90) }, "imageGCLowThresholdPercent"),
		set("high under the default low", func(c *Config) {
			c.ImageGCLowThresholdPercent, c.ImageGCHighThresholdPercent = nil, ptr.To[int32](79)
		}, "imageGCLowThresholdPercent"),
		set("imageGCHighThresholdPercent", func(c *Config) { c.ImageGCHighThresholdPercent = ptr.To[int32](101) }),
		set("imageMaximumGCAge", func(c *Config) { c.ImageMaximumGCAge = duration(time.Minute) }),
		set("maxParallelImagePulls", func(c *Config) {
			c.SerializeImagePulls, c.MaxParallelImagePulls = ptr.To(true), ptr.To[int32](2)
		}),
		set("syncFrequency", func(c *Config) { c.SyncFrequency = duration(-time.Second) }),
		set("authentication.webhook.cacheTTL", func(c *Config) { c.Authentication.Webhook.CacheTTL = duration(-1) }),
		set("shutdownGracePeriod", func(c *Config) { c.ShutdownGracePeriod = duration(time.Millisecond) }),
		set("shutdownGracePeriodCriticalPods", func(c *Config) { c.ShutdownGracePeriodCriticalPods = duration(time.Minute) }),
		set("shutdownGracePeriodByPodPriority", func(c *Config) {
			c.ShutdownGracePeriodByPodPriority = []v1beta1.ShutdownGracePeriodByPodPriority{{Priority: 1, ShutdownGracePeriodSeconds: 1}}
		}),
		set("unknown signal", func(c *Config) { c.EvictionHard["memory.availble"] = "1Gi" }, "evictionHard[memory.availble]"),
		set("evictionHard[memory.available]", func(c *Config) { c.EvictionHard["memory.available"] = "101%" }),
		set("evictionSoft[memory.available]", func(c *Config) { c.EvictionSoft["memory.available"] = "0" }),
		set("evictionSoftGracePeriod[memory.available]", func(c *Config) { c.EvictionSoftGracePeriod = nil }),
		set("evictionMinimumReclaim[nodefs.available]", func(c *Config) {
			c.EvictionMinimumReclaim = map[string]string{"nodefs.available": "some"}
		}),
		set("systemReserved[disk]", func(c *Config) { c.SystemReserved["disk"] = "1Gi" }),
		set("kubeReserved[cpu]", func(c *Config) { c.KubeReserved = map[string]string{"cpu": "-1"} }),
		set("qosReserved[memory]", func(c *Config) { c.QOSReserved = map[string]string{"memory": "half"} }),
		set("cgroupDriver", func(c *Config) { c.CgroupDriver = "cgroupv2" }),
		set("enforceNodeAllocatable[1]", func(c *Config) { c.EnforceNodeAllocatable = []string{"pods", "pods"} }),
		set("systemReservedCgroup", func(c *Config) { c.EnforceNodeAllocatable = []string{"system-reserved"} }),
		set("cgroupsPerQOS", func(c *Config) { c.CgroupsPerQOS = ptr.To(false) }),
		set("oomScoreAdj", func(c *Config) { c.OOMScoreAdj = ptr.To[int32](-1001) }),
		set("staticPodPath", func(c *Config) { c.StaticPodPath = "manifests" }),
		set("cpuCFSQuotaPeriod", func(c *Config) { c.CPUCFSQuotaPeriod = ptr.To(duration(2 * time.Second)) }),
		set("containerLogMaxSize", func(c *Config) { c.ContainerLogMaxSize = "ten" }),
		set("containerLogMonitorInterval", func(c *Config) { c.ContainerLogMonitorInterval = ptr.To(duration(time.Second)) }),
	}
}

func TestAGoodConfigHasNoProblem(t *testing.T) {
	if err := (validator{}).Validate(t.Context(), good()); err != nil {
		t.Errorf("Validate(good) = %v, want nil", err)
	}
	bare := &Config{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind}}
	if err := (validator{}).Validate(t.Context(), bare); err != nil {
		t.Errorf("Validate(a document that says nothing) = %v, want nil: the kubelet's defaults are right", err)
	}
}

// R-CS-41: a config that breaks a rule is refused, with the path of each wrong field and of no other.
func TestEachRuleNamesItsField(t *testing.T) {
	for _, b := range breakages() {
		t.Run(b.name, func(t *testing.T) {
			c := good()
			b.spoil(c)
			err := (validator{}).Validate(t.Context(), c)
			if got := Fields(err); !slices.Equal(slices.Compact(got), b.fields) {
				t.Errorf("Validate names %q (%v), want %q", got, err, b.fields)
			}
			var one *FieldError
			if !errors.As(err, &one) || !strings.HasPrefix(one.Want, "must ") {
				t.Errorf("the first problem is %v, want one that says what would be right", one)
			}
		})
	}
}

// A set of rules with one left out must be seen by the table above: each rule is there for some breakage.
func TestTheTableCatchesEachMissingRule(t *testing.T) {
	all := rules()
	for i := range all {
		left := slices.Delete(slices.Clone(all), i, i+1)
		caught := false
		for _, b := range breakages() {
			c, p := good(), Problems{}
			b.spoil(c)
			for _, r := range left {
				r(c, &p)
			}
			caught = caught || len(p) == 0
		}
		if !caught {
			t.Errorf("rule %d may be deleted and no breakage goes unseen: the table lacks a case for it", i)
		}
	}
}

func TestProblemsNeverHoldValues(t *testing.T) {
	const secret = "hunter2-hunter2"
	c := good()
	c.Address, c.CgroupDriver, c.StaticPodPath, c.ContainerLogMaxSize = secret, secret, secret, secret
	c.EvictionHard["memory.available"], c.SystemReserved["cpu"] = secret, secret
	c.ClusterDNS = []string{secret}
	err := (validator{}).Validate(t.Context(), c)
	if n := len(Fields(err)); n != 7 {
		t.Fatalf("%d fields are named (%v), want 7", n, err)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error repeats a value: %v", err)
	}
}

func TestSeveralProblemsAreOneLine(t *testing.T) {
	c := good()
	c.MaxPods, c.CgroupDriver = -1, "x"
	got := (validator{}).Validate(t.Context(), c).Error()
	want := `maxPods must be 0 or more; cgroupDriver must be one of "cgroupfs", "systemd"`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// R-CS-06: what belongs to one node has no place in a config that nodes share.
func TestSharedConfigHasNoInstanceValues(t *testing.T) {
	c := good()
	if err := shared(c, c, true); err != nil {
		t.Fatalf("shared(good) = %v, want nil", err)
	}
	c.ProviderID, c.PodCIDR = "aws:///eu/i-1", "10.0.1.0/24"
	if got, want := Fields(shared(c, c, true)), []string{"providerID", "podCIDR"}; !slices.Equal(got, want) {
		t.Errorf("shared names %q, want %q", got, want)
	}
}

func TestHealthz(t *testing.T) {
	for _, c := range []struct {
		address       string
		port          *int32
		want, wantNum string
		ok            bool
	}{
		{"", nil, "127.0.0.1", "10248", true},
		{"10.0.0.7", ptr.To[int32](1), "10.0.0.7", "1", true},
		{"0.0.0.0", nil, "127.0.0.1", "10248", true},
		{"::1", ptr.To[int32](2), "::1", "2", true},
		{"", ptr.To[int32](0), "127.0.0.1", "0", false},
	} {
		address, port, ok := Healthz(&Config{HealthzBindAddress: c.address, HealthzPort: c.port})
		if address != c.want || port != c.wantNum || ok != c.ok {
			t.Errorf("Healthz(%q, %v) = %s, %s, %t, want %s, %s, %t", c.address, c.port, address, port, ok, c.want, c.wantNum, c.ok)
		}
	}
}
