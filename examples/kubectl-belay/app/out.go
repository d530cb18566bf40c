// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/settings"
)

// app is one run of the command. What it writes holds nothing that acts on a terminal, whoever has written what is told.
type app struct{ out, errs io.Writer }

// print writes a report in the form that was asked for.
func (a *app) print(c *settings.Common, text string, object any) error {
	if c.JSON() {
		raw, err := json.MarshalIndent(object, "", "  ")
		if err != nil {
			return err
		}
		text = escaped(raw) + "\n"
	}
	_, err := io.WriteString(a.out, text)
	return err
}

// line writes a document on one line.
func (a *app) line(object any) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.out, escaped(raw)+"\n")
	return err
}

// escaped is a JSON document in which what is not printed is escaped: json leaves the controls above ASCII as they are, and what turns text around.
func escaped(document []byte) string {
	var b strings.Builder
	for _, r := range string(document) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// notef says something besides the report.
func (a *app) notef(format string, args ...any) { say(a.errs, "", fmt.Sprintf(format, args...)) }

// say writes a text for people after a head. The lines of it are those of joined errors, each of which tells of one thing.
func say(w io.Writer, head, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		_, _ = io.WriteString(w, head+page.Clean(line)+"\n")
		head = ""
	}
}
