// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
)

// TestPayloadsAreNotLogged shows that no part logs what a config holds, at the verbosity that is used to find faults.
func TestPayloadsAreNotLogged(t *testing.T) {
	c := newCluster(t)
	ref, err := c.Create(deadline(t), goodMap("quiet"))
	must(t, err)
	ref.Digest = ""
	must(t, c.assignNodeConfig(deadline(t), ref.Source()))
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(5), ktesting.BufferLogs(true)))
	ctx := klog.NewContext(deadline(t), logger)
	source, err := kube.NewNodeConfigSource(c.client, c.node, kube.Options{})
	must(t, err)
	spec, err := source.Desired(ctx)
	must(t, err)
	_, err = fetcherOf(t, c).Fetch(ctx, *spec)
	must(t, err)
	spec.Digest = "sha256:" + strings.Repeat("0", 64)
	if _, err := fetcherOf(t, c).Fetch(ctx, *spec); !errors.Is(err, configsync.ErrMismatch) || strings.Contains(err.Error(), "good-a") {
		t.Errorf("got %v, want a mismatch that shows no payload", err)
	}
	r, err := kube.NewStatusReporter(c.client, c.node, kube.Options{})
	must(t, err)
	must(t, r.Report(ctx, statusOK(metav1.Now().Time)))
	logged := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if !strings.Contains(logged, "Got object") || !strings.Contains(logged, "Applied status") {
		t.Errorf("the log lacks what was done:\n%s", logged)
	}
	if strings.Contains(logged, "payload:") || strings.Contains(logged, "good-a") {
		t.Errorf("the log shows a payload:\n%s", logged)
	}
}
