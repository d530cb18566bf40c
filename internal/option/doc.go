// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package option has the error that constructors return for options that are missing or cannot be used. All problems of
// a call are in one error, each with its remedy:
//
//	drain.New: Options.Cache is required (see drain/kube.NewCache); Options.Client is required (see drain/kube.NewClient)
package option
