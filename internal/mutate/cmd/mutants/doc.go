// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mutants breaks a package by operators over its syntax tree and prints which mutants its tests kill:
//
//	go run ./internal/mutate/cmd/mutants [-run regexp] [-max n] [-seed s] [-parallel n] [-func name] [-tests dir] [-long] DIR
//
// Without a directory it runs every hand-written mutant, package after package.
package main
