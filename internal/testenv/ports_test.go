// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/testenv"
)

// TestPortIsGivenOnce shows that a port belongs to its test until that ends, and that no outgoing connection is put on it.
func TestPortIsGivenOnce(t *testing.T) {
	raw, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Fatal(err)
	}
	first, err := strconv.Atoi(strings.Fields(string(raw))[0])
	if err != nil {
		t.Fatal(err)
	}
	const many = 700 // of about 20000: without the claim two of them are almost surely the same
	given := map[int]bool{}
	for range many {
		port := testenv.Port(t)
		if given[port] || port >= first {
			t.Fatalf("port %d is given twice (%t), or to outgoing connections too, which begin at %d", port, given[port], first)
		}
		given[port] = true
	}
}
