// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprocess

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// header starts every good config of these tests.
const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

func write(t *testing.T, dir, content string) string {
	t.Helper()
	path := filepath.Join(dir, "kubelet.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadIsStrict(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"good", header + "maxPods: 30\n", ""},
		{"unknown field", header + "maxPodz: 30\n", `unknown field "maxPodz"`},
		{"wrong type", header + "maxPods: many\n", "cannot unmarshal string"},
		{"twice", header + "maxPods: 1\nmaxPods: 2\n", "already set"},
		{"other kind", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: Pod\n", `kind "Pod"`},
		{"other version", "apiVersion: kubelet.config.k8s.io/v9\nkind: KubeletConfiguration\n", `apiVersion "kubelet.config.k8s.io/v9"`},
		{"empty", "", `apiVersion ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, digest, err := Load(write(t, t.TempDir(), c.content))
			if got := errText(err); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("Load: got error %q, want one with %q", got, c.want)
			}
			sum := sha256.Sum256([]byte(c.content))
			if want := hex.EncodeToString(sum[:]); digest != want {
				t.Errorf("Load: got digest %s, want %s: the journal must name the content also when it is no good", digest, want)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestHealthzAddressTakesTheNodesOwn(t *testing.T) { // R-CS-06
	port := int32(18248)
	for _, c := range []struct {
		name     string
		cfg      kubeletv1beta1.KubeletConfiguration
		override string
		host     string
		port     int
	}{
		{"defaults", kubeletv1beta1.KubeletConfiguration{}, "", "127.0.0.1", 10248},
		{"config", kubeletv1beta1.KubeletConfiguration{HealthzBindAddress: "127.0.0.2", HealthzPort: &port}, "", "127.0.0.2", 18248},
		{"the node's own", kubeletv1beta1.KubeletConfiguration{HealthzBindAddress: "127.0.0.2", HealthzPort: &port}, "127.9.9.9", "127.9.9.9", 18248},
	} {
		if host, port := healthzAddress(c.cfg, c.override); host != c.host || port != c.port {
			t.Errorf("%s: got %s:%d, want %s:%d", c.name, host, port, c.host, c.port)
		}
	}
}

// What is checked before a start is what a start fails with, and the text holds no value of the config.
func TestCheckRefusesWhatTheStandInWouldNotStartWith(t *testing.T) {
	const low, high = "imageGCLowThresholdPercent: ", "imageGCHighThresholdPercent: "
	for _, c := range []struct{ name, content, want string }{
		{"defaults", header, ""},
		{"in order", header + low + "70\n" + high + "71\n", ""},
		{"the wrong way round", header + low + "81\n" + high + "72\n", "imageGCLowThresholdPercent must be less"},
		{"equal", header + low + "72\n" + high + "72\n", "must be less than imageGCHighThresholdPercent"},
		{"low above the default", header + low + "87\n", "must be less"},
		{"high below the default", header + high + "79\n", "must be less"},
		{"undecodable", header + "maxPods: 7272\nmaxPodz: 8787\n", "it can't be decoded"},
	} {
		err := CheckConfig(write(t, t.TempDir(), c.content))
		text := errText(err)
		if (c.want == "") != (err == nil) || !strings.Contains(text, c.want) ||
			err != nil && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: got %v, want an error with %q that wraps ErrRefused", c.name, err, c.want)
		}
		if strings.ContainsAny(text, "0123456789") {
			t.Errorf("%s: got %q, want no value of the config", c.name, text)
		}
	}
	if err := CheckConfig(filepath.Join(t.TempDir(), "absent")); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("no file: got %v, want an error that says nothing of a config", err)
	}
}
