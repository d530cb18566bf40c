// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"errors"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/examples/internal/agent/prove"
)

// Whatever is in the record, no answer comes from it that was not kept with the secret, and nothing of it is in the error.
func FuzzRecord(f *testing.F) {
	o := shell("exit 0")
	o.Secret = []byte("a secret of this node")
	p, err := prove.New(o)
	if err != nil {
		f.Fatal(err)
	}
	want := p.Recall(&configsynctest.Disk{}).Inspect(f.Context(), "config", object("a"))
	for _, s := range []string{"", "null", `{"format":1}`, `{"format":1,"results":[null,{}]}`, `{"format":1,"results":[{"verdict":"Accepted","sum":""}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		disk := &configsynctest.Disk{}
		if err := disk.Put(t.Context(), prove.Stream, raw); err != nil {
			t.Fatal(err)
		}
		if err := p.Recall(disk).Inspect(t.Context(), "config", object("a")); !errors.Is(err, configsync.ErrUndecided) || err.Error() != want.Error() {
			t.Fatalf("the record %q gives %v, want %v", raw, err, want)
		}
	})
}
