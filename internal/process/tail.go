// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// The bounds of what a [Tail] keeps.
const (
	// TailLines is the largest number of lines that [Tail.Lines] returns.
	TailLines = 20
	// TailBytes is the largest number of bytes that [Tail.Lines] returns, without line breaks.
	TailBytes = 4 << 10

	lineBytes   = 1 << 10 // of one line; the rest of a longer line is dropped
	stackLines  = 6       // of one stack trace
	secretLines = 400     // of one PEM block without an end
)

// A Tail keeps the last lines that a process writes, for people. It drops PEM blocks and most of a stack trace, so that
// the line with the cause stays. The zero value is ready. Its methods may be called from any goroutine.
type Tail struct {
	mu      sync.Mutex
	kept    []string  // complete lines of all outputs, the oldest first
	outputs [2]output // standard output, or what Write is given, and standard error
}

// output is the state of one output: what a process writes to one is split anywhere by what it writes to the other.
type output struct {
	partial []byte // the line that has not ended
	stack   int    // lines of the present stack trace
	secret  int    // lines that the present PEM block may still have; 0: none
}

// Write keeps the end of p. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.keepFrom(&t.outputs[0], p)
	return len(p), nil
}

// keepFrom keeps the end of what one output was given.
func (t *Tail) keepFrom(o *output, p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		o.partial = append(o.partial, line[:min(len(line), lineBytes-len(o.partial))]...)
		if ended {
			t.endLine(o)
		}
		rest = after
	}
}

// endLine keeps the line that has just ended, unless it belongs to a secret or to the depth of a stack trace.
func (t *Tail) endLine(o *output) {
	line := strings.TrimRight(string(o.partial), "\r")
	o.partial = o.partial[:0]
	if o.skipSecret(line) || o.skipStack(line) {
		return
	}
	if len(t.kept) == TailLines {
		t.kept = append(t.kept[:0], t.kept[1:]...)
	}
	t.kept = append(t.kept, line)
}

// skipSecret reports whether line lies within a PEM block. The line that begins one is kept, and is cut by
// [Tail.Lines].
func (o *output) skipSecret(line string) bool {
	begins, ends := strings.LastIndex(line, pemBegin), strings.LastIndex(line, pemEnd)
	inside := o.secret > 0
	switch {
	case begins > ends:
		o.secret = secretLines
	case ends >= 0:
		o.secret = 0
	case inside:
		o.secret--
	}
	return inside
}

// skipStack reports whether line is one of a stack trace that has enough lines already.
func (o *output) skipStack(line string) bool {
	switch {
	case strings.HasPrefix(line, "goroutine ") && strings.HasSuffix(line, ":"):
		o.stack++
	case o.stack == 0:
		return false
	case line == "" || line[0] == '\t' || strings.HasPrefix(line, "created by ") || strings.HasSuffix(line, ")"):
		o.stack++
	default:
		o.stack = 0
		return false
	}
	return o.stack > stackLines
}

// LastLines returns what is kept, the oldest line first: at most [TailLines] lines with at most [TailBytes] bytes,
// without empty lines, without what acts on a terminal, and with [CutSecrets] applied. A line that has not ended is
// included, one of each output.
func (t *Tail) LastLines() []string {
	t.mu.Lock()
	all := append([]string(nil), t.kept...)
	for _, o := range t.outputs {
		if len(o.partial) > 0 && o.secret == 0 {
			all = append(all, string(o.partial))
		}
	}
	t.mu.Unlock()
	var out []string
	left := TailBytes
	for i := len(all) - 1; i >= 0 && len(out) < TailLines; i-- {
		line := strings.TrimRightFunc(CutSecrets(printableLine(all[i])), unicode.IsSpace)
		if line == "" {
			continue
		}
		if left -= len(line); left < 0 {
			break
		}
		out = append(out, line)
	}
	slices.Reverse(out)
	return out
}

// printableLine replaces what acts on a terminal.
func printableLine(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return '?'
		default:
			return r
		}
	}, line)
}

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	cutMark  = "[cut]"
)

// secretValue is the pattern of the value of a field.
const secretValue = `(?:\\?"(?:[^"\\]|\\[^"])*\\?"?|'[^']*'?|[^\s,;}]+)`

// secretPatterns find secrets in a line. What their first group matches stays.
var secretPatterns = []*regexp.Regexp{
	regexp.MustCompile(`(-----BEGIN ).*?(?:-----END [^-]*-----|$)`),
	regexp.MustCompile(`(, path: &).*`), // behind it a kubelet that refuses its config prints all of it
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[^\s"',;]+`),
	regexp.MustCompile(`(?i)([\w.-]*(?:token|passw(?:or)?d|secret|api[_-]?key|private[_-]?key|key[_-]?data|credential)` +
		`[\w.-]*\\?["']?\s*[:=]\s*)` + secretValue),
	regexp.MustCompile(`(?i)((?:^\s*(?:-\s+)?|[{,]\s*)(?:[\w-]+\.)?key\s*:\s*)` + secretValue), // not the key= of a log
	regexp.MustCompile(`(?i)(\\?["'](?:[\w-]+\.)?key\\?["']\s*:\s*)` + secretValue),
	regexp.MustCompile(`()LS0tLS1CRUdJTi[\w+/=]*`), // a PEM block in base64
	regexp.MustCompile(`(?i)(--[\w-]*(?:token|password|secret)[\w-]*\s+)[^\s-]\S*`),
	regexp.MustCompile(`(://)[^\s/@:]+:[^\s/@]+@`),
	regexp.MustCompile(`()\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?`), // a JSON web token
	regexp.MustCompile(`()\b[a-z0-9]{6}\.[a-z0-9]{16}\b`),       // a bootstrap token
}

// CutSecrets replaces what looks like a secret in one line of text: PEM blocks, a whole kubelet config, the values of
// authorization headers and of fields and flags whose name has token, password, secret, credential, api-key,
// private-key or key-data in it, key: fields, passwords in URLs, JSON web tokens and bootstrap tokens. It finds what
// has such a form and no more.
func CutSecrets(line string) string {
	for _, p := range secretPatterns {
		line = p.ReplaceAllString(line, "${1}"+cutMark)
	}
	return line
}

// KeepTail has what cmd writes kept in the Tail that it returns, besides where it goes already. Call it before [Start].
// A file other than this process's own standard output and error stays as it is, and what goes there is not kept. An
// output that fails or is full does not end the command: what it writes is lost there, and is still kept.
func KeepTail(cmd *exec.Cmd) *Tail {
	kept := &Tail{}
	if cmd == nil {
		return kept
	}
	one := isSameWriter(cmd.Stdout, cmd.Stderr)
	cmd.Stdout = kept.teeTo(cmd.Stdout, &kept.outputs[0])
	if one {
		cmd.Stderr = cmd.Stdout // exec.Cmd promises that such a writer is called by one goroutine at a time
	} else {
		cmd.Stderr = kept.teeTo(cmd.Stderr, &kept.outputs[1])
	}
	return kept
}

// teeTo returns a writer that keeps what is written as that of an output, and hands it on to w.
func (t *Tail) teeTo(w io.Writer, from *output) io.Writer {
	if f, ok := w.(*os.File); ok && f != os.Stdout && f != os.Stderr {
		return w // exec.Cmd may close it: its own pipes are such files
	}
	return &tee{w, t, from}
}

func isSameWriter(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// tee hands on and keeps. It has no ReadFrom, which io.Copy would prefer.
type tee struct {
	next io.Writer // may be nil
	kept *Tail
	from *output
}

// Write implements io.Writer. It never fails.
func (t *tee) Write(p []byte) (int, error) {
	if t.next != nil {
		_, _ = t.next.Write(p) // the process that writes must not end because the disk behind its log is full
	}
	t.kept.keepFrom(t.from, p)
	return len(p), nil
}
