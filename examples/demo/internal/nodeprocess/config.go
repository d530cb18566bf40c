// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprocess

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

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

// CheckConfig returns an error if the KubeletConfiguration at path is one that the stand-in would not start with. It
// starts nothing. An error that wraps [ErrRefused] is about the config, and names fields and no values; any other is
// about the file.
func CheckConfig(path string) error {
	cfg, digest, err := Load(path)
	switch {
	case digest == "":
		return err
	case err != nil:
		return fmt.Errorf("%w: it can't be decoded", ErrRefused)
	}
	return checkImageGC(cfg)
}

// ErrRefused means that the stand-in would not start with a config.
var ErrRefused = errors.New("the config is refused")

// The thresholds of a kubelet if its config doesn't say, in percent of the disk.
const (
	defaultImageGCHigh = 85
	defaultImageGCLow  = 80
)

// checkImageGC is all of a kubelet's validation that the story needs: images are removed from a disk that is fuller
// than the high threshold until it is emptier than the low one.
func checkImageGC(cfg kubeletv1beta1.KubeletConfiguration) error {
	high, low := int32(defaultImageGCHigh), int32(defaultImageGCLow)
	if cfg.ImageGCHighThresholdPercent != nil {
		high = *cfg.ImageGCHighThresholdPercent
	}
	if cfg.ImageGCLowThresholdPercent != nil {
		low = *cfg.ImageGCLowThresholdPercent
	}
	if low >= high {
		return fmt.Errorf("%w: imageGCLowThresholdPercent must be less than imageGCHighThresholdPercent", ErrRefused)
	}
	return nil
}
