// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeletpayload

import (
	"context"
	"net/netip"
	"strconv"

	v1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/belayproject/belay/configsync"
)

// What a document must say about itself, and where it lies in a ConfigMap.
const (
	// APIVersion and Kind of the documents.
	APIVersion = "kubelet.config.k8s.io/v1beta1"
	Kind       = "KubeletConfiguration"
	// Key is the entry of a ConfigMap's data that holds the config.
	Key = "kubelet"
)

// The kubelet's defaults for its health endpoint.
const (
	defaultHealthzAddress = "127.0.0.1"
	defaultHealthzPort    = 10248
)

// Config is the kubelet's own config type.
type Config = v1beta1.KubeletConfiguration

// Validators gives the rules for every config that a node may use, whether it came from the API server or from the
// node's disk.
func Validators() []configsync.Validator[*Config] {
	return []configsync.Validator[*Config]{validator{}}
}

// validator applies all rules.
type validator struct{}

// Validate lists every wrong field at once, as [Problems], so that one round of correction is enough.
func (validator) Validate(_ context.Context, c *Config) error {
	var p Problems
	for _, r := range rules() {
		r(c, &p)
	}
	return p.err()
}

// Healthz gives the address and port that the kubelet serves /healthz on under c. ok is false where c switches it off.
func Healthz(c *Config) (address, port string, ok bool) {
	address = c.HealthzBindAddress
	if address == "" {
		address = defaultHealthzAddress
	}
	n := valueOr(c.HealthzPort, defaultHealthzPort)
	if parsed, err := netip.ParseAddr(address); err == nil && parsed.IsUnspecified() {
		address = defaultHealthzAddress // it listens on all addresses, this one too
	}
	return address, strconv.Itoa(int(n)), n != 0
}
