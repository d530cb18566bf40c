// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package skew says which releases belay is held against, and holds it against them.
//
// [Libraries] are the k8s.io modules that the library module is built, vetted and unit-tested with; [Embedders] are
// releases of controller-runtime that a program has beside it, [ManagerRuntimes] those that examples/manager is tested
// with; [Servers] are the Kubernetes servers that the suites run on; [Gain] is what one package brings into the build
// of a program that imports it. The committed go.mod is never changed: each build has a copy of it, or a scratch
// module, outside of the work tree.
//
// The commands below this package print the tables: cmd/matrix for libraries, embedders, managers and gains,
// cmd/servers for the suites on each server.
package skew
