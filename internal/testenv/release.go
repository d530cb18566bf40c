// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"strconv"
	"strings"

	"k8s.io/client-go/discovery"
)

// Minor returns the minor release of the API server, such as 37 of v1.37.2. A claim that holds from one release on asks
// for it, and asserts the older behaviour on an older server.
func (e *Env) Minor(tb TB) int {
	tb.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(e.config)
	if err != nil {
		tb.Fatal("making a client:", err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		tb.Fatal("asking the API server for its release:", err)
	}
	minor, err := strconv.Atoi(strings.TrimSuffix(version.Minor, "+"))
	if err != nil {
		tb.Fatal("reading the release of the API server:", err)
	}
	return minor
}
