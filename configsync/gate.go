// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
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
type GateError struct {
	// Line is where, from 1; 0 for the document as a whole.
	Line int
	// Problem says what is wrong and what would be right.
	Problem string
}

// Error gives line and problem.
func (e *GateError) Error() string {
	if e.Line == 0 {
		return "document " + e.Problem
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
}

// Gate lets a YAML or JSON document through if no two readers can take it for different things and none can be made to grow
// without bound by it: one document within the limits, in UTF-8, without anchors, aliases, merge keys and tags, with maps whose
// keys are plain strings that differ in more than case. It returns the document as JSON. Scalars have the meaning that
// Kubernetes gives them (YAML 1.1: "yes" is true). Errors are [*GateError]s.
func Gate(doc []byte, l GateLimits) ([]byte, error) {
	l = l.withDefaults()
	if err := scan(doc, l); err != nil {
		return nil, err
	}
	root, err := parse(doc)
	if err != nil {
		return nil, err
	}
	w := walker{limits: l}
	if err := w.walk(root, 1); err != nil {
		return nil, err
	}
	out, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, &GateError{Problem: "is YAML that Kubernetes reads differently; write it as plain block YAML or JSON"}
	}
	return out, nil
}

// scan refuses by looking at the bytes alone.
func scan(doc []byte, l GateLimits) error {
	switch {
	case len(doc) > l.Bytes:
		return &GateError{Problem: fmt.Sprintf("has %d bytes, at most %d are taken", len(doc), l.Bytes)}
	case !utf8.Valid(doc):
		return &GateError{Problem: "must be UTF-8"}
	case bytes.IndexByte(doc, 0) >= 0:
		return &GateError{Problem: "must not hold NUL bytes"}
	case len(bytes.TrimSpace(doc)) == 0:
		return &GateError{Problem: "must not be empty"}
	}
	return nil
}

// parse reads exactly one document without expanding anything.
func parse(doc []byte) (*yamlv3.Node, error) {
	dec := yamlv3.NewDecoder(bytes.NewReader(doc))
	var root yamlv3.Node
	if err := dec.Decode(&root); err != nil {
		return nil, syntaxError(err)
	}
	var second yamlv3.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, syntaxError(err)
	default:
		return nil, &GateError{Line: second.Line, Problem: "a second document begins here; there must be one"}
	}
	return &root, nil
}

// syntaxError keeps the line of a parser's error and drops its text, which may hold a part of the document.
func syntaxError(err error) error {
	var line int
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if n, scanErr := fmt.Sscanf(text, "line %d:", &line); n != 1 || scanErr != nil {
		return &GateError{Problem: "is not valid YAML"}
	}
	return &GateError{Line: line, Problem: "is not valid YAML"}
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
		return &GateError{Line: n.Line, Problem: fmt.Sprintf("more than %d keys and values", w.limits.Nodes)}
	case depth > w.limits.Depth:
		return &GateError{Line: n.Line, Problem: fmt.Sprintf("nested deeper than %d levels", w.limits.Depth)}
	case n.Anchor != "" || n.Kind == yamlv3.AliasNode:
		return &GateError{Line: n.Line, Problem: "anchors and aliases are not taken; write the value out"}
	case n.Style&yamlv3.TaggedStyle != 0:
		return &GateError{Line: n.Line, Problem: "tags are not taken; write the value without one"}
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
			return &GateError{Line: key.Line, Problem: problem}
		}
		folded := strings.ToLower(key.Value)
		if seen[folded] {
			return &GateError{Line: key.Line, Problem: "a key stands twice in its map, or differs from another in case only"}
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
