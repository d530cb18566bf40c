// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
)

// Head begins each config in YAML: its apiVersion and kind.
const Head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// Init is the kubelet's config that every node was provisioned with.
const Init = Head + "failSwapOn: false\nmaxPods: 30\n"

// trial is how long a config must run well, threshold how many crashes it is forgiven.
const trial, threshold = "2s", "1"

// Data is the content of the ConfigMap of a revision, with its limits.
func Data(name string) map[string]string {
	own := "failSwapOn: false\nmaxPods: 110\n"
	if name == Fatal {
		own = "failSwapOn: true\nmaxPods: 110\n"
	}
	return map[string]string{
		kubelet.Key:                      Head + own,
		configsync.KeyTrialDuration:      trial,
		configsync.KeyCrashLoopThreshold: threshold,
	}
}

// Breaks says why a kubelet with that config exits at once, as a real one does on a machine that has swap; empty if it
// does not.
func Breaks(swap bool, c *kubelet.Config) string {
	if swap && (c.FailSwapOn == nil || *c.FailSwapOn) {
		return "running with swap on is not supported, and failSwapOn is true"
	}
	return ""
}
