// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprocess

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// Where a kubelet serves healthz if its config doesn't say.
const (
	defaultHealthzAddress = "127.0.0.1"
	defaultHealthzPort    = 10248
)

// Load reads the KubeletConfiguration at path strictly: an unknown field, another kind or another version is an error.
// digest is the SHA-256 of the file, in hex, also where the content is no good.
func Load(path string) (cfg kubeletv1beta1.KubeletConfiguration, digest string, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return cfg, "", fmt.Errorf("reading the config: %w", err)
	}
	sum := sha256.Sum256(raw)
	digest = hex.EncodeToString(sum[:])
	if err := yaml.UnmarshalStrict(raw, &cfg); err != nil {
		return cfg, digest, fmt.Errorf("decoding %q: %w", path, err)
	}
	if want := kubeletv1beta1.SchemeGroupVersion.String(); cfg.APIVersion != want || cfg.Kind != "KubeletConfiguration" {
		return cfg, digest, fmt.Errorf("decoding %q: got apiVersion %q, kind %q; want %q, %q",
			path, cfg.APIVersion, cfg.Kind, want, "KubeletConfiguration")
	}
	return cfg, digest, nil
}

// healthzAddress is where to serve healthz: what the config says, with the node's own address in place of the config's where
// override is set, because an address is an instance value that a shared config can't hold.
func healthzAddress(cfg kubeletv1beta1.KubeletConfiguration, override string) (host string, port int) {
	host, port = defaultHealthzAddress, defaultHealthzPort
	if cfg.HealthzBindAddress != "" {
		host = cfg.HealthzBindAddress
	}
	if cfg.HealthzPort != nil {
		port = int(*cfg.HealthzPort)
	}
	if override != "" {
		host = override
	}
	return host, port
}

// checkCPUs says whether the CPU policy can be had: exclusive CPUs are given away from what is left beside a reservation, so there must
// be one. No validation of a kubelet's config asks for it; a kubelet exits.
func checkCPUs(cfg kubeletv1beta1.KubeletConfiguration) error {
	if cfg.CPUManagerPolicy != "static" || cfg.ReservedSystemCPUs != "" {
		return nil
	}
	for _, reserved := range []map[string]string{cfg.SystemReserved, cfg.KubeReserved} {
		if q, err := resource.ParseQuantity(reserved["cpu"]); err == nil && q.Sign() > 0 {
			return nil
		}
	}
	return errors.New(`cpuManagerPolicy "static": no CPU is reserved for the system or the kubelet, so none can be given away`)
}
