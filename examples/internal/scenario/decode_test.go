// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/kubeletpayload"
)

// decode reads a config as the agents do.
func decode(t *testing.T, text string) *kubeletpayload.Config {
	t.Helper()
	object := configsync.Object{Data: map[string]string{kubeletpayload.Key: text}}
	cfg, _, err := kubeletpayload.Codec(kubeletpayload.CodecOptions{}).Decode(kubeletpayload.Key, object)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range kubeletpayload.Validators() {
		if err := v.Validate(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}
