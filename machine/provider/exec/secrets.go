// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// secrets are the texts that a request holds and that nobody may see, in all their forms, the longest first.
type secrets []string

// leastSecret is the length from which on a value is looked for: a shorter one stands everywhere by chance.
const leastSecret = 4

const hidden = "[secret]"

// secretsOf collects values, and the lines of those that have several.
func secretsOf(all []map[string][]byte) secrets {
	seen := map[string]bool{}
	for _, values := range all {
		for _, v := range values {
			for _, part := range append([][]byte{v, bytes.TrimSpace(v)}, longLines(v)...) {
				for _, form := range forms(part) {
					if len(form) >= leastSecret {
						seen[form] = true
					}
				}
			}
		}
	}
	var s secrets
	for form := range seen {
		s = append(s, form)
	}
	slices.SortFunc(s, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return s
}

// longLines are the lines that say something by themselves.
func longLines(v []byte) (lines [][]byte) {
	for line := range bytes.Lines(v) {
		if line = bytes.TrimSpace(line); len(line) >= 16 {
			lines = append(lines, line)
		}
	}
	return lines
}

// forms are how a value looks in the output of programs.
func forms(v []byte) []string {
	if len(v) == 0 {
		return nil
	}
	quoted, _ := json.Marshal(string(v)) // a string can always be encoded
	return []string{
		string(v), strings.Trim(string(quoted), `"`), hex.EncodeToString(v), strings.ToUpper(hex.EncodeToString(v)),
		base64.StdEncoding.EncodeToString(v), base64.RawStdEncoding.EncodeToString(v),
		base64.URLEncoding.EncodeToString(v), base64.RawURLEncoding.EncodeToString(v), url.QueryEscape(string(v)),
	}
}

// scrub replaces all of them.
func (s secrets) scrub(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}

// scrubTail is scrub for a text whose beginning was cut off: the rest of a secret that was cut is taken away too.
func (s secrets) scrubTail(text string) string {
	cut := 0
	for _, secret := range s {
		for n := min(len(secret), len(text)); n > cut; n-- {
			if strings.HasSuffix(secret, text[:n]) {
				cut = n
				break
			}
		}
	}
	return s.scrub(text[cut:])
}
