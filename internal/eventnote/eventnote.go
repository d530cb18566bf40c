// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package eventnote

import (
	"strings"
	"unicode/utf8"
)

// Limit is the most bytes that the API server takes.
const Limit = 1024

// ClipNote returns the note as it is if it is valid UTF-8 of at most [Limit] bytes. Otherwise it replaces what is not
// valid, and cuts the note between two runes; an ellipsis ends a note that was cut.
func ClipNote(note string) string {
	const mark = "…"
	note = strings.ToValidUTF8(note, "\uFFFD")
	if len(note) <= Limit {
		return note
	}
	end := Limit - len(mark)
	for !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + mark
}
