// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"encoding/json"
	"testing"

	"github.com/belayproject/belay/examples/internal/controller/page"
	"github.com/belayproject/belay/examples/internal/controller/page/pagetest"
)

// benchNodes is the size of a domain that is aimed at.
const benchNodes = 5000

// BenchmarkModel is a look at 5,000 nodes, and what a reader who comes is sent.
func BenchmarkModel(b *testing.B) {
	s := pagetest.Seen(b, benchNodes, now())
	var m page.Model
	b.ReportAllocs()
	for b.Loop() {
		m = page.Of(s)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(raw)), "bytes/model")
}

// BenchmarkChange is the difference that ten nodes of 5,000 make, as it is sent.
func BenchmarkChange(b *testing.B) {
	s := pagetest.Seen(b, benchNodes, now())
	before := page.Of(s)
	for i := range 10 {
		s.Shadows[4000+i].Status.Current = pagetest.Ref("v2")
	}
	after := page.Of(s)
	var raw []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if raw, err = json.Marshal(page.Diff(before, after)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(raw))/10, "bytes/node")
}
