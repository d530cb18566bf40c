// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strictjson decodes JSON documents of which every part must be understood. encoding/json ignores the
// case of names, lets the last of two equal names win, and drops unknown fields and elements beyond the end
// of an array. Each of them is an error here, and so is anything after the document. An error names the path
// of a field, what is there, and what would be right: field "disks[1].size" is a string of 4 bytes: want a
// whole number from 0 to 65535.
//
// The package imports the standard library only, so leaves may import it.
package strictjson
