// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bare is the least that a client of an API server is: a typed client with one watch, of one Node.
package main
