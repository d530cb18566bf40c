// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"slices"
	"strings"
	"testing"
)

// What a kubelet accepts and what harms the node all the same is told, by the field, without the value.
func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string // how the warnings begin
	}{
		{"", nil},
		{"{", nil},
		{"maxPods: 110\nevictionHard: {memory.available: 100Mi, nodefs.available: 10%}\n", nil},
		{"maxPods: 1\n", []string{"maxPods is less"}},
		{"maxPods: many\n", nil},
		{"maxPods: 5000\n", []string{"maxPods is 1000"}},
		{"evictionHard: {memory.available: 99%}\n", []string{"evictionHard[memory.available] is 90%"}},
		{"evictionHard: {nodefs.available: 10%}\n", []string{"evictionHard has no memory.available"}},
		{"evictionHard: {nodefs.available: 10%}\nmergeDefaultEvictionSettings: true\n", nil},
		{"evictionHard: {memory.available: 200Mi}\nevictionSoft: {memory.available: 100Mi}\n",
			[]string{"evictionSoft[memory.available] is not above"}},
		{"evictionHard: {memory.available: 200Mi}\nevictionSoft: {memory.available: 1Gi}\n", nil},
		{"evictionHard: {memory.available: 20%}\nevictionSoft: {memory.available: 10%}\n",
			[]string{"evictionSoft[memory.available] is not above"}},
		{"evictionHard: {memory.available: 20%}\nevictionSoft: {memory.available: 1Gi}\n", nil},
		{"nodeLeaseDurationSeconds: 86400\n", []string{"nodeLeaseDurationSeconds is"}},
		{"nodeLeaseDurationSeconds: 40\n", nil},
		{"authentication: {anonymous: {enabled: true}}\nauthorization: {mode: AlwaysAllow}\n",
			[]string{"authentication.anonymous.enabled is true", "authorization.mode is AlwaysAllow"}},
		{"authentication: true\n", nil},
		{"podPidsLimit: -1\npodsPerCore: 0\n", nil},
		{"podPidsLimit: 5\npodsPerCore: 1\n", []string{"podPidsLimit is", "podsPerCore is"}},
		{"oomScoreAdj: 500\nreadOnlyPort: 10255\n", []string{"oomScoreAdj is", "readOnlyPort is set"}},
		{"syncFrequency: 1h\nruntimeRequestTimeout: 1s\n", []string{"runtimeRequestTimeout is", "syncFrequency is"}},
		{"runtimeRequestTimeout: 0s\nstreamingConnectionIdleTimeout: 4h\n", nil},
		{"containerLogMaxSize: 10Ki\nstaticPodURL: http://secret/\n",
			[]string{"containerLogMaxSize is", "staticPodURL begins"}},
	} {
		got := Warnings([]byte(c.text))
		ok := slices.EqualFunc(got, c.want, strings.HasPrefix)
		if !ok || strings.Contains(strings.Join(got, ""), "secret") {
			t.Errorf("Warnings(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}
