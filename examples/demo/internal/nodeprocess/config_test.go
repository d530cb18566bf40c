// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprocess

import (
	"crypto/sha256"
	"encoding/hex"
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

func TestExclusiveCPUsNeedAReservation(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  kubeletv1beta1.KubeletConfiguration
		ok   bool
	}{
		{"no policy", kubeletv1beta1.KubeletConfiguration{}, true},
		{"none", kubeletv1beta1.KubeletConfiguration{CPUManagerPolicy: "none"}, true},
		{"static", kubeletv1beta1.KubeletConfiguration{CPUManagerPolicy: "static"}, false},
		{"memory only", kubeletv1beta1.KubeletConfiguration{
			CPUManagerPolicy: "static", KubeReserved: map[string]string{"memory": "1Gi"},
		}, false},
		{"nothing of it", kubeletv1beta1.KubeletConfiguration{
			CPUManagerPolicy: "static", KubeReserved: map[string]string{"cpu": "0"},
		}, false},
		{"for the kubelet", kubeletv1beta1.KubeletConfiguration{
			CPUManagerPolicy: "static", KubeReserved: map[string]string{"cpu": "500m"},
		}, true},
		{"for the system", kubeletv1beta1.KubeletConfiguration{
			CPUManagerPolicy: "static", SystemReserved: map[string]string{"cpu": "1"},
		}, true},
		{"by number", kubeletv1beta1.KubeletConfiguration{CPUManagerPolicy: "static", ReservedSystemCPUs: "0"}, true},
	} {
		if err := checkCPUs(c.cfg); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want ok=%v", c.name, err, c.ok)
		}
	}
}
