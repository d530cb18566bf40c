// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app is the reference controller as a command, for a main of your own:
//
//	func main() {
//		os.Exit(app.Run(app.NewCommand()))
//	}
package app
