// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package layers_test

import (
	"bytes"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/layers"
)

// Laying the stronger layer over the result again changes nothing, every origin is one of the layers, and the result passes the gate that the layers passed.
func FuzzMerge(f *testing.F) {
	for _, s := range [][2]string{{"a: {b: [1]}", "a: {b: []}"}, {"a: null", "a: {}"}, {"", "# c\na: 1\n"}, {"a.b: {\"\": 1}", "a.b: {\"\\\"\": <&>}"}} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, below, above []byte) {
		all := []layers.Layer{{Name: "below", Doc: below}, {Name: "above", Doc: above}}
		m, err := layers.Merge(all...)
		if err != nil {
			return
		}
		if m.Whole == "" {
			if _, err := configsync.Gate(m.Doc, configsync.GateLimits{Bytes: 4 << 20, Nodes: 400_000}); err != nil {
				t.Fatalf("the result %q: %v", m.Doc, err)
			}
		}
		for _, o := range m.Origins {
			if o.Layer != "below" && o.Layer != "above" {
				t.Fatalf("field %s is from %q", o.Path, o.Layer)
			}
		}
		if m.Whole != "" {
			return
		}
		again, err := layers.Merge(layers.Layer{Name: "result", Doc: m.Doc}, all[1])
		if err == nil && !bytes.Equal(again.Doc, m.Doc) {
			t.Fatalf("with the stronger layer laid over it again, %q is %q", m.Doc, again.Doc)
		}
	})
}
