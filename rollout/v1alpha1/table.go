// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	// plainText is how long a table may be to be stored as it is.
	plainText = 4 << 10
	// largestTable is how long one may be at all: it keeps a forged one from filling the memory.
	largestTable = 32 << 20
	packedPrefix = "gzip:"
)

// pack makes a table short.
func pack(table string) string {
	if len(table) <= plainText {
		return table
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a valid one
	_, err := io.WriteString(z, table)
	if err := errors.Join(err, z.Close()); err != nil {
		return table // a buffer takes everything
	}
	return packedPrefix + base64.StdEncoding.EncodeToString(b.Bytes())
}

// unpack undoes pack.
func unpack(packed string) (string, error) {
	text, isPacked := strings.CutPrefix(packed, packedPrefix)
	if !isPacked {
		return packed, nil
	}
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil {
		return "", fmt.Errorf("decompressing: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(z, largestTable+1))
	if err != nil {
		return "", fmt.Errorf("decompressing: %w", err)
	}
	if len(raw) > largestTable {
		return "", fmt.Errorf("it is longer than %d bytes", largestTable)
	}
	return string(raw), nil
}

// linesOf are the lines of a table, each of which ends with a newline.
func linesOf(table string) ([]string, error) {
	if table == "" {
		return nil, nil
	}
	body, complete := strings.CutSuffix(table, "\n")
	if !complete {
		return nil, errors.New("the last line is not complete")
	}
	return strings.Split(body, "\n"), nil
}

// word writes a text so that [nextWord] finds it again.
func word(text string) string {
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' }
	if text == "" || text[0] == '#' || strings.HasPrefix(text, packedPrefix) || strings.ContainsFunc(text, odd) {
		return strconv.Quote(text)
	}
	return text
}

// nextWord reads the first word of a line. Bare says that it was not quoted.
func nextWord(line string) (text, rest string, bare bool, err error) {
	if !strings.HasPrefix(line, `"`) {
		text, rest, _ = strings.Cut(line, " ")
		if text == "" || strings.Contains(text, `"`) {
			return "", "", true, fmt.Errorf("%q begins with no word", line)
		}
		return text, rest, true, nil
	}
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		return "", "", false, fmt.Errorf("%q: %w", line, err)
	}
	if text, err = strconv.Unquote(quoted); err != nil {
		return "", "", false, fmt.Errorf("%q: %w", quoted, err)
	}
	rest = line[len(quoted):]
	if rest != "" && rest[0] != ' ' {
		return "", "", false, fmt.Errorf("%q goes on without a blank", quoted)
	}
	return text, strings.TrimPrefix(rest, " "), false, nil
}

// places are the lines on which UIDs stand, from 1 on.
type places map[string]int

func placesOf(uids []string) places {
	at := make(places, len(uids))
	for i, uid := range uids {
		at[uid] = i + 1
	}
	return at
}

// ref is how a UID is written: by its line among the members if it has one.
func (at places) ref(uid string) string {
	if line := at[uid]; line > 0 {
		return "#" + strconv.Itoa(line)
	}
	return word(uid)
}

// uidOf reads the UID with which a line begins.
func uidOf(line string, members []string) (uid, rest string, err error) {
	uid, rest, bare, err := nextWord(line)
	if err != nil || !bare || uid[0] != '#' {
		return uid, rest, err
	}
	n, err := strconv.Atoi(uid[1:])
	if err != nil || n < 1 || n > len(members) {
		return "", "", fmt.Errorf("%s is none of the %d members", uid, len(members))
	}
	return members[n-1], rest, nil
}
