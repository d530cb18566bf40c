// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/filesum"
	"github.com/belayproject/belay/lkg"
)

const (
	// proofStream is the record that holds the answers.
	proofStream = "kubelet-proofs"
	// maxResults is how many answers are kept. The oldest are dropped.
	maxResults = 64
	// proofFormat is that of the record. A record of another format is not read: to ask again costs a run.
	proofFormat = 1
	// maxTries is how often the kubelet is asked about a document without an answer. To ask on would keep a node
	// from a config that works: what is left is to try it.
	maxTries = 3
)

// A result is an answer of the kubelet.
type result struct {
	ID      string `json:"id"` // of the subject
	Refused bool   `json:"refused,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Tries counts the judgements that have found nothing out; then Reason says why the last one has not.
	Tries int `json:"tries,omitempty"`
}

// isOpen reports whether the kubelet is to be asked again.
func (r result) isOpen() bool { return r.Tries > 0 && r.Tries < maxTries }

// err is nil for a config that the kubelet accepts, and for one that it was asked about often enough.
func (r result) err() error {
	switch {
	case r.Refused:
		return fmt.Errorf("the kubelet refuses it: %s", r.Reason)
	case r.isOpen():
		return asUndecided(errors.New(r.Reason))
	}
	return nil
}

type proofRecord struct {
	Format  int      `json:"format"`
	Results []result `json:"results"`
}

// readResults returns the answers on record. What cannot be read is none: the kubelet is asked again.
func readResults(ctx context.Context, g lkg.Getter) []result {
	raw, err := g.Get(ctx, proofStream)
	if err != nil {
		return nil
	}
	var r proofRecord
	if json.Unmarshal(raw, &r) != nil || r.Format != proofFormat {
		return nil
	}
	return keepNewest(r.Results)
}

func saveResults(ctx context.Context, s configsync.Store, all []result) error {
	raw, err := json.Marshal(proofRecord{proofFormat, all})
	if err != nil {
		return err
	}
	return s.Put(ctx, proofStream, raw)
}

func keepNewest(all []result) []result { return all[max(0, len(all)-maxResults):] }

// keepResult puts a result in the place of an older one of its subject, as the newest.
func keepResult(all []result, r result) []result {
	kept := make([]result, 0, len(all)+1)
	for _, old := range all {
		if old.ID != r.ID {
			kept = append(kept, old)
		}
	}
	return keepNewest(append(kept, r))
}

func findResult(all []result, id string) (result, bool) {
	for _, r := range all {
		if r.ID == id {
			return r, true
		}
	}
	return result{}, false
}

// setID names a subject by all that an answer depends on.
func (s *subject) setID(c *filesum.Cache) error {
	sum, err := digestOfProgram(c, s.program)
	if err != nil {
		return err
	}
	s.binary = sum
	h := sha256.New()
	isolated := canIsolate() == nil
	for _, part := range append([]string{sum, string(s.payload), string(s.document), fmt.Sprint(isolated)}, s.args...) {
		fmt.Fprintf(h, "%d %s\n", len(part), part) // a hash takes all
	}
	s.id = hex.EncodeToString(h.Sum(nil))
	return nil
}

// digestOfProgram returns the digest of a file that can be executed.
func digestOfProgram(c *filesum.Cache, path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("%q is no program", path)
	}
	return c.DigestOf(path)
}

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
	return strings.Contains(reason, "unknown flag") || strings.Contains(reason, "unknown shorthand flag") ||
		strings.Contains(reason, "parse kubelet flag")
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
	text = strings.Join(strings.Fields(strings.Map(printableRune, text)), " ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	if text == "" {
		return "it ended and said nothing"
	}
	return text
}

func printableRune(r rune) rune {
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
