// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
)

// decode reads a config as the agents do.
func decode(t *testing.T, text string) *kubelet.Config {
	t.Helper()
	object := configsync.Object{Data: map[string]string{kubelet.Key: text}}
	cfg, _, err := kubelet.Codec(kubelet.CodecOptions{}).Decode(kubelet.Key, object)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
