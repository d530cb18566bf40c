// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeletpayload

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// signals are the eviction signals that a config may set thresholds for. containerfs follows nodefs or imagefs by itself.
func signals() []string {
	return []string{
		"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available",
	}
}

func eviction(c *Config, p *Problems) {
	thresholds(p, "evictionHard", c.EvictionHard)
	thresholds(p, "evictionSoft", c.EvictionSoft)
	for _, s := range sorted(c.EvictionSoft) {
		_, ok := c.EvictionSoftGracePeriod[s]
		p.need(ok, key("evictionSoftGracePeriod", s), "must be set, because evictionSoft sets a threshold for this signal")
	}
	for _, s := range sorted(c.EvictionSoftGracePeriod) {
		field := key("evictionSoftGracePeriod", s)
		oneOf(p, field, s, signals()...)
		d, err := time.ParseDuration(c.EvictionSoftGracePeriod[s])
		p.need(err == nil && d >= 0, field, `must be a duration of 0 or more, such as "90s"`)
	}
	for _, s := range sorted(c.EvictionMinimumReclaim) {
		field := key("evictionMinimumReclaim", s)
		oneOf(p, field, s, signals()...)
		v := c.EvictionMinimumReclaim[s]
		p.need(percentage(v) || quantity(v, 0), field, `must be a quantity of 0 or more, such as "500Mi", or a percentage`)
	}
	atLeast(p, "evictionMaxPodGracePeriod", c.EvictionMaxPodGracePeriod, -1)
}

// thresholds checks one map of signals to thresholds.
func thresholds(p *Problems, field string, m map[string]string) {
	for _, s := range sorted(m) {
		oneOf(p, key(field, s), s, signals()...)
		p.need(percentage(m[s]) || quantity(m[s], 1), key(field, s),
			`must be a positive quantity, such as "100Mi", or a percentage from 0% to 100%`)
	}
}

// percentage reports whether v is "N%" with N from 0 to 100.
func percentage(v string) bool {
	digits, ok := strings.CutSuffix(v, "%")
	n, err := strconv.ParseFloat(digits, 32)
	return ok && err == nil && n >= 0 && n <= 100
}

// quantity reports whether v is a resource quantity whose sign is at least sign.
func quantity(v string, sign int) bool {
	q, err := resource.ParseQuantity(v)
	return err == nil && q.Sign() >= sign
}

// reserved checks what the kubelet keeps back from pods.
func reserved(c *Config, p *Problems) {
	for _, r := range []struct {
		field string
		m     map[string]string
	}{{"systemReserved", c.SystemReserved}, {"kubeReserved", c.KubeReserved}} {
		for _, k := range sorted(r.m) {
			oneOf(p, key(r.field, k), k, "cpu", "memory", "ephemeral-storage", "pid")
			p.need(quantity(r.m[k], 0), key(r.field, k), `must be a quantity of 0 or more, such as "200m" or "1Gi"`)
		}
	}
	for _, k := range sorted(c.QOSReserved) {
		oneOf(p, key("qosReserved", k), k, "memory")
		p.need(percentage(c.QOSReserved[k]), key("qosReserved", k), "must be a percentage from 0% to 100%")
	}
}
