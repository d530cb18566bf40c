// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command matrix builds, vets and unit-tests the library with each release of the k8s.io modules that it supports,
// builds it beside releases of controller-runtime, tests examples/manager with them, and measures what each package
// brings into the build of a program that imports it. It prints one table of each.
//
//	matrix [-only "0.35 gains"] [-write] [PACKAGE ...]
//
// -only names the lines: minors of k8s.io such as 0.35, minors of controller-runtime after "runtime-" such as
// runtime-0.23, manager for examples/manager or one of its lines such as manager-0.23, and gains. PACKAGES are patterns
// of the library module, ./... if there is none: they are for the first table alone. Gains are compared with
// docs/embedding/dependencies.md; -write writes them there.
//
// The exit code is 1 where a line fails. A release that is not out may fail.
package main
