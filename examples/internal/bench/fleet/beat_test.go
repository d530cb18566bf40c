// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A heartbeat says of each condition when it was looked at and leaves the node ready and its images alone; the images are as large as real ones, by digest
// and tag.
func TestPatchesAreThoseOfAKubelet(t *testing.T) {
	now := metav1.NewTime(time.Unix(1000, 0))
	p := beatPatch(now)
	if len(p.Status.Conditions) != 4 || p.Status.Images != nil {
		t.Errorf("got %+v, want 4 conditions and no images", p)
	}
	for _, c := range p.Status.Conditions {
		if want := c.Type == corev1.NodeReady; !c.LastHeartbeatTime.Equal(&now) || (c.Status == corev1.ConditionTrue) != want {
			t.Errorf("got %+v, want it to be true where it is Ready, and of %v", c, now)
		}
	}
	raw, err := json.Marshal(imagesPatch(nodeImages))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(raw), "@sha256:"); n != 50 || len(raw) < 8<<10 || strings.Contains(string(raw), "conditions") {
		t.Errorf("got %d images in %d bytes, want 50 in 8 KiB or more, and no conditions", n, len(raw))
	}
}
