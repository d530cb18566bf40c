// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxSignature bounds a signature, in bytes.
const maxSignature = 240

var (
	// klogHead is the head of a line of klog: severity, date, time, thread. What follows is file, line and message.
	klogHead = regexp.MustCompile(`^([IWEF])\d{4} \d{2}:\d{2}:\d{2}\.\d+ +\d+ `)
	// errorHead begins a line with the cause of an end in other logs.
	errorHead = regexp.MustCompile(`(?i)^(?:panic|fatal(?: error)?|error|[\w./-]+: error|runtime): `)
	// jsonError is the severity of an error line of a log in JSON, as component-base writes it: an error has no "v".
	jsonError = regexp.MustCompile(`^\{.*"(?:err|error)":`)
	// jsonVarying are the members of such a line that differ from one run to the next.
	jsonVarying = regexp.MustCompile(`"(?:ts|time|timestamp|pid)":(?:"[^"]*"|[^,}]*),?`)
	// leadingTime is the time in front of a line of another log.
	leadingTime = regexp.MustCompile(`^\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}:\d{2}\S* `)
	// codePlace is a place in source code. It stays as it is.
	codePlace = regexp.MustCompile(`^[\w.-]+\.go:\d+\]`)
)

// varying are the parts of a line that differ between two ends with one cause.
var varying = []*regexp.Regexp{
	regexp.MustCompile(`\\"(?:[^"\\]|\\[^"])*\\"`), // a quoted value within a quoted text
	regexp.MustCompile(`0x[0-9a-fA-F]+`),
	regexp.MustCompile(`\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`), // a UID
	regexp.MustCompile(`\b[0-9a-f]{12,}\b`),
	regexp.MustCompile(`\b\d+(?:\.\d+)*(?:ns|µs|ms|s|m|h)?\b`),
}

// signatureOf returns the signature of an end: how it ended, such as "exit status 1", and the line with its cause.
func signatureOf(how string, lines []string) string {
	line := causeLine(lines)
	if line == "" {
		return how
	}
	return clipText(how+": "+stableText(line), maxSignature)
}

// causeLine returns the line that most likely has the cause of an end: the last error line, or else the last line.
func causeLine(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if m := klogHead.FindStringSubmatch(line); m != nil && (m[1] == "E" || m[1] == "F") {
			return line
		}
		if errorHead.MatchString(line) || jsonError.MatchString(line) {
			return line
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// stableText returns line without what differs between two ends with one cause.
func stableText(line string) string {
	line = leadingTime.ReplaceAllString(klogHead.ReplaceAllString(line, ""), "")
	if strings.HasPrefix(line, "{") {
		line = jsonVarying.ReplaceAllString(line, "")
	}
	place := codePlace.FindString(line)
	line = strings.TrimPrefix(line, place)
	for _, p := range varying {
		line = p.ReplaceAllString(line, "?")
	}
	return place + line
}

// clipText cuts s to at most limit bytes of valid UTF-8.
func clipText(s string, limit int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
