// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package appoption checks the options of app.NewCommand. All problems are in one error, each with its remedy:
//
//	app.NewCommand: WithUpdater: name is required (such as "images"); WithValidator: the validator is nil
//
// NewCommand returns no error: a command with unusable options fails with that error whatever its arguments are.
package appoption
