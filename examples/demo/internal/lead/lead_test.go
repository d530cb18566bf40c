// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"net"
	"testing"
)

// Series are added up by metric and label, and nothing else is.
func TestSum(t *testing.T) {
	const text = "# HELP a_total x\na_total{code=\"200\",method=\"GET\"} 40\na_total{code=\"409\",method=\"PATCH\"} 2\na_totals{code=\"200\"} 7\na 5\nb{name=\"x\"} 1\n"
	for _, c := range []struct {
		metric, label string
		want          int64
	}{{"a_total", "", 42}, {"a_total", "PATCH", 2}, {"b", "x", 1}, {"b", "y", 0}, {"c", "", 0}} {
		if got := sum(text, c.metric, c.label); got != c.want {
			t.Errorf("sum of %s with %q: got %d, want %d", c.metric, c.label, got, c.want)
		}
	}
}

// An address that is taken gives way to another port.
func TestFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	if got, err := free(taken); err != nil || got == taken {
		t.Errorf("free(%q): got %q, %v, want another port", taken, got, err)
	}
}
