// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// A Format is a way to print a document.
type Format string

// The formats.
const (
	Table Format = "table" // for people
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// ParseFormat gives the format of that name. The error lists those that there are.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case Table, JSON, YAML:
		return f, nil
	}
	return "", fmt.Errorf("output format %q is not known: it must be %s, %s or %s", name, Table, JSON, YAML)
}

// Write prints d in the given format.
func Write(w io.Writer, f Format, d Document) error {
	if f == Table {
		return writeTable(w, d)
	}
	return WriteData(w, f, d)
}

// WriteData prints v as YAML where f is that, and as JSON otherwise.
func WriteData(w io.Writer, f Format, v any) error {
	if f == YAML {
		raw, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// WriteNext prints what the next start would do, for people.
func WriteNext(w io.Writer, d Document) error {
	var p page
	p.next(d.Next)
	_, err := w.Write(bytes.TrimPrefix(p.Bytes(), []byte("\n")))
	return err
}

// oneLine keeps what others wrote from breaking the lines of a table, or the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f:
			return '?'
		default:
			return r
		}
	}, s)
}
