// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mutate proves that a test suite can fail: it runs the suite on deliberately broken copies of the source and demands
// that each is caught. [Kill] runs a whole table, [Sample] one in twenty of it, and all of it in make mutants. The
// tree is never changed: the go command's overlay shows it the broken file in place of the real one. Mutants of a table that change bodies of
// functions alone are compiled together, into a program that runs one of them at a time.
package mutate
