// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command requirements fills the last column of docs/requirements.md with the tests that say, in their name, comment or
// body, which requirement they show. It takes no arguments and works from any directory of the module. A list that it cannot
// read stays as it is.
package main
