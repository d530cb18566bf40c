// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// maxElements bounds the elements of a rule's path, as the gate bounds the depth of a document.
const maxElements = 64

// An element is one step of a path. The zero element is no step.
type element struct {
	name string // of a key
	item bool   // a place in a list
	at   int    // which
	star bool   // any key, or any place
}

// plain are the keys that need no quotes.
var plain = regexp.MustCompile("^[A-Za-z0-9_/-]+$")

// Key appends a key of a map to a path, as errors and origins write it. The path of the document as a whole is empty.
func Key(path, name string) string {
	name = clipped(name)
	switch {
	case !plain.MatchString(name):
		return path + "[" + strconv.Quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// Place appends a place in a list to a path, from 0.
func Place(path string, at int) string { return path + "[" + strconv.Itoa(at) + "]" }

// clipped bounds a key that a document chose before it goes into a path that people read.
func clipped(s string) string {
	if len(s) > 64 {
		return s[:61] + "..."
	}
	return s
}

// parsePath reads the path of a rule.
func parsePath(text string) ([]element, error) {
	if text == "" {
		return nil, errors.New("must not be empty")
	}
	var path []element
	for rest := text; rest != ""; {
		if len(path) == maxElements {
			return nil, fmt.Errorf("must not have more than %d elements", maxElements)
		}
		var e element
		var err error
		e, rest, err = nextElement(rest, len(path) == 0)
		if err != nil {
			return nil, fmt.Errorf("%w (at byte %d)", err, len(text)-len(rest))
		}
		path = append(path, e)
	}
	return path, nil
}

// nextElement splits the first element off. After an error rest begins where it is.
func nextElement(text string, first bool) (e element, rest string, err error) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		return bracket(inner, text)
	}
	if !first {
		var dot bool
		if text, dot = strings.CutPrefix(text, "."); !dot {
			return e, text, errors.New("must have a dot or a bracket between two names")
		}
	}
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	name := text[:end]
	switch {
	case name == "*":
		return element{star: true}, text[end:], nil
	case !plain.MatchString(name):
		return e, text, errors.New("names must be of letters, digits, dash, underscore and slash; write others as [\"name\"]")
	}
	return element{name: name}, text[end:], nil
}

// bracket reads an element behind its opening bracket. all is the text from there on.
func bracket(inner, all string) (e element, rest string, err error) {
	if strings.HasPrefix(inner, "\"") {
		quoted, err := strconv.QuotedPrefix(inner)
		if err != nil {
			return e, all, errors.New("a name in brackets must be a whole string in double quotes")
		}
		rest, closed := strings.CutPrefix(inner[len(quoted):], "]")
		name, err := strconv.Unquote(quoted)
		if err != nil || !closed {
			return e, all, errors.New("a bracket must be closed behind the name")
		}
		return element{name: name}, rest, nil
	}
	number, rest, closed := strings.Cut(inner, "]")
	at, err := strconv.Atoi(number)
	switch {
	case !closed:
		return e, all, errors.New("a bracket must be closed")
	case number == "*":
		return element{item: true, star: true}, rest, nil
	case err != nil || at < 0 || strconv.Itoa(at) != number:
		return e, all, errors.New("brackets must hold a place in a list, * or a name in double quotes")
	}
	return element{item: true, at: at}, rest, nil
}
