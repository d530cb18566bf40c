// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/identity/nodeauth"
)

// TestTokenVolume covers R-AU-03: short-lived, for one audience, and never of the life that the server stretches to a year.
func TestTokenVolume(t *testing.T) {
	for life, ok := range map[time.Duration]bool{
		0: false, 10*time.Minute - time.Second: false, 10 * time.Minute: true, time.Hour: true, time.Hour + time.Second: false, 3607 * time.Second: false,
		-time.Hour: false, 24 * time.Hour: false,
	} {
		v, err := nodeauth.TokenVolume("token", "belay-api", life)
		if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "TokenVolume.expirationSeconds: Invalid value: ") {
			t.Errorf("%s: got %v, want accepted: %t", life, err, ok)
		}
		if err == nil {
			token := v.Projected.Sources[0].ServiceAccountToken
			if v.Name != "token" || token.Audience != "belay-api" || *token.ExpirationSeconds != int64(life/time.Second) || token.Path != "token" {
				t.Errorf("%s: got the volume %q with %+v", life, v.Name, token)
			}
		}
	}
}

// template is the pod of a DaemonSet that is right for usual.
func template(t *testing.T) *corev1.PodSpec {
	t.Helper()
	v, err := nodeauth.TokenVolume("token", "", time.Hour)
	must(t, err)
	return &corev1.PodSpec{
		ServiceAccountName: "agent", AutomountServiceAccountToken: ptr.To(false), Volumes: []corev1.Volume{{Name: "host"}, v},
		Containers: []corev1.Container{{
			Name: "agent", Image: "example.com/agent",
			VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
		}},
	}
}

// TestPodsAreCheckedAgainstTheOptions covers R-AU-03 and R-AU-10: a DaemonSet that runs as another account than the policy's, or with a token of
// another kind, is found before it is installed.
func TestPodsAreCheckedAgainstTheOptions(t *testing.T) {
	must(t, usual().CheckPod("belay", template(t)))
	source := func(p *corev1.PodSpec) *corev1.ServiceAccountTokenProjection {
		return p.Volumes[1].Projected.Sources[0].ServiceAccountToken
	}
	for name, row := range map[string]struct {
		namespace string
		change    func(p *corev1.PodSpec)
		want      string
	}{
		"another account":   {"belay", func(p *corev1.PodSpec) { p.ServiceAccountName = "agnet" }, `spec.serviceAccountName: Invalid value: "belay/agnet": must be belay/agent, which the policy guards`},
		"no account":        {"belay", func(p *corev1.PodSpec) { p.ServiceAccountName = "" }, `spec.serviceAccountName: Invalid value: "belay/"`},
		"another namespace": {"kube-system", func(*corev1.PodSpec) {}, `spec.serviceAccountName: Invalid value: "kube-system/agent"`},
		"automounted":       {"belay", func(p *corev1.PodSpec) { p.AutomountServiceAccountToken = ptr.To(true) }, "spec.automountServiceAccountToken: Required value: must be false"},
		"by default":        {"belay", func(p *corev1.PodSpec) { p.AutomountServiceAccountToken = nil }, "spec.automountServiceAccountToken: Required value: must be false"},
		"no token":          {"belay", func(p *corev1.PodSpec) { p.Volumes = p.Volumes[:1] }, `spec.volumes: Required value: there must be a projected serviceAccountToken for the audience "", among those for []`},
		"another audience":  {"belay", func(p *corev1.PodSpec) { source(p).Audience = "belay-api" }, `spec.volumes: Required value: there must be a projected serviceAccountToken for the audience "", among those for ["belay-api"]`},
		"default life":      {"belay", func(p *corev1.PodSpec) { source(p).ExpirationSeconds = nil }, "spec.volumes[1].projected.sources[0].serviceAccountToken.expirationSeconds: Required value: must be from 600 to 3600"},
		"stretched life":    {"belay", func(p *corev1.PodSpec) { source(p).ExpirationSeconds = ptr.To(int64(3607)) }, "expirationSeconds: Invalid value: 3607: must be from 600 to 3600"},
	} {
		p := template(t)
		row.change(p)
		if err := usual().CheckPod(row.namespace, p); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
	}
}

// TestPodsHaveATokenForEachAudience covers R-AU-03: an agent that calls a web API as well has two tokens.
func TestPodsHaveATokenForEachAudience(t *testing.T) {
	v, err := nodeauth.TokenVolume("web", "belay-api", time.Hour)
	must(t, err)
	one, both := template(t), template(t)
	both.Volumes = append(both.Volumes, v)
	must(t, usual().CheckPod("belay", both))
	must(t, usual().CheckPod("belay", both, "", "belay-api"))
	const want = `there must be a projected serviceAccountToken for the audience "belay-api", among those for [""]`
	if err := usual().CheckPod("belay", one, "", "belay-api"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestServerTakesTheVolume covers R-AU-03: the API server accepts a pod of the template, and mounts nothing into it besides.
func TestServerTakesTheVolume(t *testing.T) {
	c := newCluster(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: *template(t)}
	pod.Spec.Volumes = pod.Spec.Volumes[1:]
	got, err := c.admin.CoreV1().Pods(c.namespace).Create(t.Context(), pod, dryCreate)
	must(t, err)
	if len(got.Spec.Volumes) != 1 || *got.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken.ExpirationSeconds != 3600 {
		t.Errorf("got the volumes %+v, want the one with its token of an hour", got.Spec.Volumes)
	}
}
