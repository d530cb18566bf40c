// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	// maxHead and maxTail bound what is kept of a log: its beginning, which names unknown fields, and its end, which
	// says why the kubelet ended.
	maxHead, maxTail = 64 << 10, 64 << 10
	// maxReason bounds a reason, in bytes.
	maxReason = 512
	// minSecret is the length of the shortest text value that is cut from a reason.
	minSecret = 4
)

// A capture keeps the beginning and the end of what is written.
type capture struct{ head, tail []byte }

func captureOutput(cmd *exec.Cmd) *capture {
	c := &capture{}
	cmd.Stdout, cmd.Stderr = c, c
	return c
}

// Write implements io.Writer.
func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	room := min(maxHead-len(c.head), n)
	c.head = append(c.head, p[:room]...)
	c.tail = append(c.tail, p[max(room, n-maxTail):]...)
	c.tail = c.tail[max(0, len(c.tail)-maxTail):]
	return n, nil
}

// String returns what is kept. Call it after the program has ended.
func (c *capture) String() string { return string(c.head) + string(c.tail) }

func lastLine(log string) string {
	log = strings.TrimRight(log, "\n ")
	return log[strings.LastIndexByte(log, '\n')+1:]
}

var (
	unknownField = regexp.MustCompile(`unknown field \\?"([^"\\]+)\\?"`)
	errorHeader  = regexp.MustCompile(`(?m)^[EF]\d{4} [^\]\n]*\] `)
	errorField   = regexp.MustCompile(`err=("(?:[^"\\]|\\.)*")`)
	longError    = regexp.MustCompile(`(?s)err=<\n(.*?)\n >`)
	dump         = regexp.MustCompile(`(?s), path: &.*$`)
	// wrappings say where in the kubelet an error was found, which is the same for each.
	wrappings = regexp.MustCompile(`failed to run Kubelet: |failed to validate kubelet configuration, error: |` +
		`failed to load kubelet config file, path: \S*, error: |failed to load Kubelet config file \S*, error `)
)

// unknownFields are the fields that the kubelet says it passes over.
func unknownFields(log string) (names []string) {
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "lenient decoding") {
			continue
		}
		for _, m := range unknownField.FindAllStringSubmatch(line, -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// isFlagError reports whether a kubelet ended because of its command line.
func isFlagError(reason string) bool {
	return strings.Contains(reason, "unknown flag") || strings.Contains(reason, "unknown shorthand flag") || strings.Contains(reason, "parse kubelet flag")
}

// reasonOf is why a kubelet ended, in one line, without the text values of the document and the name of the directory.
func reasonOf(log string, doc []byte, dir string) string {
	text := dump.ReplaceAllString(lastError(log), "")
	text = wrappings.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, dir, "")
	for _, value := range textValues(doc) {
		text = strings.ReplaceAll(text, value, "…")
		if quoted := strconv.Quote(value); quoted[1:len(quoted)-1] != value {
			text = strings.ReplaceAll(text, quoted[1:len(quoted)-1], "…")
		}
	}
	text = strings.Join(strings.Fields(strings.Map(printable, text)), " ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	if text == "" {
		return "it ended and said nothing"
	}
	return text
}

func printable(r rune) rune {
	if unicode.IsSpace(r) {
		return ' '
	}
	if !unicode.IsPrint(r) {
		return '?'
	}
	return r
}

// lastError is what the last error of a log says.
func lastError(log string) string {
	if at := strings.LastIndex(log, "\npanic: "); at >= 0 {
		line, _, _ := strings.Cut(log[at+1:], "\n")
		return line
	}
	last := lastLine(log)
	var entry struct{ Msg, Err string }
	if json.Unmarshal([]byte(last), &entry) == nil && entry.Msg != "" {
		return entry.Msg + ": " + entry.Err
	}
	headers := errorHeader.FindAllStringIndex(log, -1)
	if len(headers) == 0 {
		return last
	}
	text := log[headers[len(headers)-1][1]:]
	if m := longError.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	first, _, _ := strings.Cut(text, "\n")
	m := errorField.FindStringSubmatch(first)
	if m == nil {
		return first
	}
	said, err := strconv.Unquote(m[1])
	if err != nil {
		return first
	}
	if message, _, ok := strings.Cut(first, " err="); ok && !strings.Contains(message, "command failed") {
		return strings.Trim(message, `"`) + ": " + said
	}
	return said
}

// textValues are the texts in a document, the longest first.
func textValues(doc []byte) (values []string) {
	var v any
	if raw, err := toJSON(doc); err != nil || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	var collect func(v any)
	collect = func(v any) {
		switch v := v.(type) {
		case string:
			for line := range strings.Lines(v) {
				if line = strings.TrimSpace(line); len(line) >= minSecret {
					values = append(values, line)
				}
			}
		case []any:
			for _, e := range v {
				collect(e)
			}
		case map[string]any:
			for name, e := range v {
				if name != "apiVersion" && name != "kind" {
					collect(e)
				}
			}
		}
	}
	collect(v)
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	return values
}
