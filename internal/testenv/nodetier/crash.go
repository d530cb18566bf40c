// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodetier

// Crash is a change to a good configuration that decodes strictly and passes the kubelet's own validation, and
// still makes the pinned kubelet exit soon after its start.
type Crash struct {
	// Name says what is wrong.
	Name string
	// Fields go to [Node.Config].
	Fields map[string]any
	// ExitCode is the kubelet's.
	ExitCode int
	// Says is a part of the kubelet's last words, on standard error.
	Says string
	// Healthy tells that the kubelet answers on its healthz port before it exits, for some tens of milliseconds.
	Healthy bool
}

// Crashes returns the known ones, on any machine that a kubelet runs on. The caller owns the slice.
func Crashes() []Crash {
	return []Crash{
		{
			Name:     "static CPU policy without a reservation",
			Fields:   map[string]any{"cpuManagerPolicy": "static"},
			ExitCode: 1, Says: "unable to determine reserved CPU resources for static policy",
		},
		{
			Name:     "eviction signal that does not exist",
			Fields:   map[string]any{"evictionHard": map[string]any{"memory.free": "100Mi"}},
			ExitCode: 1, Says: "unsupported eviction signal memory.free",
		},
		{
			Name: "negative interval for static pods",
			Fields: map[string]any{
				"fileCheckFrequency": "-1s", "staticPodPath": "/nonexistent",
			},
			ExitCode: 2, Says: "panic: non-positive interval for NewTicker",
		},
		{
			Name: "reservation beyond the machine's memory",
			Fields: map[string]any{
				"systemReserved": map[string]any{"memory": "900Ti"}, "enforceNodeAllocatable": []string{"pods"},
			},
			ExitCode: 1, Says: "Expected capacity >= reservation", Healthy: true,
		},
	}
}
