// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app is the reference controller as a command, for a main of your own:
//
//	func main() {
//		os.Exit(app.Run(app.NewCommand()))
//	}
//
// # Under a root of your own
//
// Without WithLogger the command has the flags for the log that Kubernetes components have, -v among them. A root with
// a persistent flag of another name and this shorthand, such as --verbose, makes cobra panic when it parses them: give
// WithLogger there, which leaves out the flags for the log.
package app
