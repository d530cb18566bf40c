// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// GateLimits bound a document before it is decoded. A zero field means the default that its comment names.
type GateLimits struct {
	// Bytes of the document: 256 KiB. A parser needs up to a hundred times as much memory.
	Bytes int
	// Depth of nesting: 64.
	Depth int
	// Nodes, that is keys, values, lists and maps: 100,000.
	Nodes int
}

func (l GateLimits) withDefaults() GateLimits {
	if l.Bytes <= 0 {
		l.Bytes = 256 << 10
	}
	if l.Depth <= 0 {
		l.Depth = 64
	}
	if l.Nodes <= 0 {
		l.Nodes = 100_000
	}
	return l
}

// A GateError says why a document was not let through. It holds no value of the document.
type gateError struct {
	// Line is where, from 1; 0 for the document as a whole.
	Line int
	// Problem says what is wrong and what would be right.
	Problem string
}

// Error gives line and problem.
func (e *gateError) Error() string {
	if e.Line == 0 {
		return "document " + e.Problem
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
}

// Gate lets a YAML or JSON document through if no two readers can take it for different things and none can be made to
// grow without bound by it: one document, a map or a list, within the limits, in UTF-8, without anchors, aliases, merge
// keys, tags and directives, with maps whose keys are plain strings that differ in more than case. It returns the
// document as JSON. Scalars have the meaning that Kubernetes gives them (YAML 1.1: "yes" is true). Errors name the line
// and the problem, and no value.
func Gate(doc []byte, l GateLimits) (out []byte, err error) {
	l = l.withDefaults()
	if err := scan(doc, l); err != nil {
		return nil, err
	}
	defer func() { // the parsers are not ours, and a panic on a config would keep the node down
		if recover() != nil {
			out, err = nil, &gateError{Problem: "is not valid YAML: it brings the parser to a panic"}
		}
	}()
	root, err := parse(doc)
	if err != nil {
		return nil, err
	}
	w := walker{limits: l}
	if err := w.walk(root, 1); err != nil {
		return nil, err
	}
	return convert(doc, root)
}

// convert gives the document as JSON, by the parser that Kubernetes uses, which is not the one that root comes from.
// Where the two see another structure, what was checked is not what would be used.
func convert(doc []byte, root *yamlv3.Node) ([]byte, error) {
	out, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, &gateError{Problem: readDifferently}
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.UseNumber()
	var seen any
	if err := dec.Decode(&seen); err != nil {
		return nil, &gateError{Problem: readDifferently}
	}
	if line := difference(root, seen); line != 0 {
		return nil, &gateError{Line: line, Problem: readDifferently}
	}
	return out, nil
}

const readDifferently = "is YAML that Kubernetes reads differently; write it as plain block YAML or JSON"

// difference returns the line of the first node whose counterpart in v has another shape; 0 where there is none.
func difference(n *yamlv3.Node, v any) int {
	switch v := v.(type) {
	case map[string]any:
		if n.Kind != yamlv3.MappingNode || len(n.Content) != 2*len(v) {
			return n.Line
		}
		for i := 0; i < len(n.Content); i += 2 {
			member, ok := v[n.Content[i].Value]
			if !ok {
				return n.Content[i].Line
			}
			if line := difference(n.Content[i+1], member); line != 0 {
				return line
			}
		}
	case []any:
		if n.Kind != yamlv3.SequenceNode || len(n.Content) != len(v) {
			return n.Line
		}
		for i, c := range n.Content {
			if line := difference(c, v[i]); line != 0 {
				return line
			}
		}
	default:
		if n.Kind != yamlv3.ScalarNode {
			return n.Line
		}
	}
	return 0
}

// scan refuses by looking at the bytes alone.
func scan(doc []byte, l GateLimits) error {
	switch {
	case len(doc) > l.Bytes:
		return &gateError{Problem: fmt.Sprintf("has %d bytes, at most %d are taken", len(doc), l.Bytes)}
	case !utf8.Valid(doc):
		return &gateError{Problem: "must be UTF-8"}
	case bytes.IndexByte(doc, 0) >= 0:
		return &gateError{Problem: "must not hold NUL bytes"}
	case len(bytes.TrimSpace(doc)) == 0:
		return &gateError{Problem: "must not be empty"}
	case doc[0] == '%' || bytes.Contains(doc, []byte("\n%")) || bytes.Contains(doc, []byte("\r%")):
		// The parser compares each %TAG with all before it: seconds of work in a legal size.
		return &gateError{Problem: "directives are not taken: no line may begin with %"}
	case separators(doc) > 2*l.Nodes:
		return &gateError{Problem: fmt.Sprintf("has so many separators that it can hold far more than %d keys and values", l.Nodes)}
	}
	return nil
}

// separators weighs the bytes that can make a parser allocate, also where they stand inside a text: about the number of
// nodes for a document of many small values, and less than it for none. A node costs a parser some two hundred bytes,
// so this is what keeps a document of two bytes a node from being parsed at all.
func separators(doc []byte) int {
	weight := 0
	for i, c := range doc {
		next := byte('\n')
		if i+1 < len(doc) {
			next = doc[i+1]
		}
		ends := bytes.IndexByte([]byte(" \t\r\n,]}"), next) >= 0
		quoted := i > 0 && (doc[i-1] == '"' || doc[i-1] == '\'')
		switch {
		case c == ',', c == ':' && (ends || quoted):
			weight += 2
		case c == '[', c == '{', (c == '-' || c == '?') && ends:
			weight++
		case c == '#':
			weight += 5 // comments are kept in the tree, in copies
		}
	}
	return weight
}

// parse reads exactly one document without expanding anything.
func parse(doc []byte) (*yamlv3.Node, error) {
	dec := yamlv3.NewDecoder(bytes.NewReader(doc))
	var root yamlv3.Node
	switch err := dec.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, &gateError{Problem: "holds nothing but comments"}
	case err != nil:
		return nil, syntaxError(err)
	}
	var second yamlv3.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, syntaxError(err)
	default:
		return nil, &gateError{Line: second.Line, Problem: "a second document begins here; there must be one"}
	}
	top := root.Content[0]
	if top.Kind == yamlv3.ScalarNode {
		return nil, &gateError{Line: top.Line, Problem: "must be a map or a list"}
	}
	return top, nil
}

// syntaxError keeps the line of a parser's error. Its text may hold a part of the document, so only known texts are
// told, in other words.
func syntaxError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	var line int
	if n, scanErr := fmt.Sscanf(text, "line %d:", &line); n == 1 && scanErr == nil {
		_, text, _ = strings.Cut(text, ": ")
	}
	problem := "is not valid YAML"
	for _, h := range syntaxHints {
		if text == h.text {
			problem += ": " + h.hint
		}
	}
	return &gateError{Line: line, Problem: problem}
}

// syntaxHints say what to look for where a parser stumbled.
var syntaxHints = []struct{ text, hint string }{
	{"found character that cannot start any token", "a tab as indentation, or a value that must stand in quotes"},
	{"mapping values are not allowed in this context", "a colon where no key can be; quote the value, or mend the indentation"},
	{"did not find expected key", "the indentation does not fit that of the lines before"},
	{"did not find expected '-' indicator", "the indentation does not fit that of the list"},
	{"could not find expected ':'", "a key without a colon"},
	{"did not find expected ',' or ']'", "a list in brackets that does not end, or without a comma"},
	{"did not find expected ',' or '}'", "a map in braces that does not end, or without a comma"},
	{"found unexpected end of stream", "a text in quotes that does not end"},
}

// walker checks every node of a document.
type walker struct {
	limits GateLimits
	nodes  int
}

func (w *walker) walk(n *yamlv3.Node, depth int) error {
	w.nodes++
	switch {
	case w.nodes > w.limits.Nodes:
		return &gateError{Line: n.Line, Problem: fmt.Sprintf("more than %d keys and values", w.limits.Nodes)}
	case depth > w.limits.Depth:
		return &gateError{Line: n.Line, Problem: fmt.Sprintf("nested deeper than %d levels", w.limits.Depth)}
	case n.Anchor != "" || n.Kind == yamlv3.AliasNode:
		return &gateError{Line: n.Line, Problem: "anchors and aliases are not taken; write the value out"}
	case n.Style&yamlv3.TaggedStyle != 0:
		return &gateError{Line: n.Line, Problem: "tags are not taken; write the value without one"}
	case strings.ContainsRune(n.Value, 0):
		return &gateError{Line: n.Line, Problem: "a text must not hold a NUL"}
	case n.Tag == "!!float" && isNoNumber(n.Value):
		return &gateError{Line: n.Line, Problem: "infinity and not-a-number are not taken; write a number, or a text in quotes"}
	case n.Kind == yamlv3.MappingNode:
		return w.mapping(n, depth)
	}
	for _, c := range n.Content {
		if err := w.walk(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// mapping checks the keys of a map and walks its values.
func (w *walker) mapping(n *yamlv3.Node, depth int) error {
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if problem := keyProblem(key); problem != "" {
			return &gateError{Line: key.Line, Problem: problem}
		}
		folded := fold(key.Value)
		if seen[folded] {
			return &gateError{Line: key.Line, Problem: "a key stands twice in its map, or differs from another in case only"}
		}
		seen[folded] = true
		for _, c := range n.Content[i : i+2] {
			if err := w.walk(c, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// keyProblem says why a node can't be the key of a map, or nothing.
func keyProblem(key *yamlv3.Node) string {
	quoted := key.Style&(yamlv3.DoubleQuotedStyle|yamlv3.SingleQuotedStyle) != 0
	switch {
	case key.Kind == yamlv3.AliasNode || key.Anchor != "":
		return "anchors and aliases are not taken; write the value out"
	case key.Kind != yamlv3.ScalarNode:
		return "the keys of a map must be strings"
	case key.Tag == "!!merge" || (!quoted && key.Value == "<<"):
		return "merge keys are not taken; write the values out"
	case !quoted && (key.Tag != "!!str" || isWord11(key.Value)):
		return "a key that reads as a number, boolean, null or time must stand in quotes"
	}
	return ""
}

// isWord11 reports whether YAML 1.1 reads s as a boolean or null where YAML 1.2 reads a string.
func isWord11(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "":
		return true
	}
	return false
}

// isNoNumber reports whether a float is one that JSON can't hold.
func isNoNumber(s string) bool {
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case ".inf", ".nan":
		return true
	}
	return false
}

// fold maps all strings to one that a reader who ignores case could take for each other. It knows more variants than
// lower case: the Kelvin sign reads as k, and the long s as s.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}
