// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testenv starts a real control plane for tests: etcd and kube-apiserver, on request also
// kube-controller-manager, kube-scheduler and kwok, compiled from their own modules.
//
// A package shares one between its tests, each of which works in a namespace of its own:
//
//	var shared testenv.Shared
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
//
//	func TestPrecondition(t *testing.T) {
//		env := shared.Env(t)
//		client := kubernetes.NewForConfigOrDie(env.Config())
//		namespace := env.Namespace(t)
//		…
//	}
//
// A test that kills or freezes a server starts its own control plane with [Start]; a command does so with [New].
//
// # What it is
//
// RBAC, the node authorizer and NodeRestriction are on. Everything listens on 127.0.0.1, on ports that nothing
// else is given while the control plane lives, so that a server that was killed comes back on its own. Users are
// client certificates: [Env.User]. There is no controller manager unless asked for: nothing deletes a namespace
// or collects garbage, but pods can be created. etcd does not sync its data to disk: this is no place to test its
// durability.
//
// # What is left behind
//
// Nothing: processes, the directory, mounts beneath it and cgroups named after it are removed by [Env.Close], and
// by package reaper when the owner panics or is killed. The compiled servers stay in the user's cache directory.
package testenv
