// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strictjson decodes JSON documents of which every part must be understood. encoding/json ignores the case of names,
// lets the last of two equal names win, and drops unknown fields. Each of them is an error here, and so is anything after the
// document.
//
// The package imports the standard library only, so leaves may import it.
package strictjson
