// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/internal/agent/settings"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`

// Each kind of source that the flag names gives that source, and a fetcher where there is one.
func TestOptionsHaveTheSourceThatTheFlagNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := checkpoint.Open(filepath.Join(t.TempDir(), "state"), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	for flag, want := range map[string]string{
		"nodeconfig": "*kube.NodeConfigSource", "annotation": "*kube.annotationSource", "legacy": "*kube.legacySource", "shadow": "<nil>",
		"directory=" + t.TempDir(): "*file.Source", "none": "<nil>",
	} {
		s := &settings.Run{Local: *settings.Defaults(), NodeName: "n1", Kubeconfig: path, Source: flag}
		o, err := Options(s, store, nil, func() *kubelet.Config { return nil }, nil)
		if got := fmt.Sprintf("%T", o.Source); err != nil || got != want || (o.Fetcher == nil) != (flag == "none") {
			t.Errorf("--source=%s: source %s, fetcher %T (%v), want source %s", flag, got, o.Fetcher, err, want)
		}
	}
}
