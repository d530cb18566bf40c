// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package option collects what is wrong with the arguments of a call into one error, the Error of the public package of
// the same name.
package option
