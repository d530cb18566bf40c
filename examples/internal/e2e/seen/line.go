// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package seen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// A Line is one start.
type Line struct {
	// Config is the text of the config that the start was given.
	Config string
	// Status, Message and Reason are those of the Node's ConfigOK condition at that moment; empty where there was none.
	Status, Message, Reason string
}

// Read reads the lines of a file. A last line that isn't whole yet is left out; no file is fs.ErrNotExist.
func Read(path string) ([]Line, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lines []Line
	for text := range bytes.Lines(raw) {
		if !bytes.HasSuffix(text, []byte("\n")) {
			break
		}
		var l Line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("reading %q: line %d: %w", path, len(lines)+1, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}
