// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archtest keeps the rules of the house as tests: which package may import what, what every source file owes its
// reader, and which test shows which requirement.
//
// Each rule is a pure function over a [Graph] (what the go command says about imports) or a [Tree] (parsed sources), and
// returns a [Violation] for each place where it is broken. The tests run every rule on the module itself, and on small bad
// packages that the rule must catch. To change a rule, change its table here, with the reason, in the commit that needs it.
//
// The rules are heuristics over syntax: they see names, not types. A package that dot-imports or renames the time package
// could sleep unseen; the linters cover those.
package archtest
