// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/belayproject/belay/configsync"
)

// Read gives the value of a document in YAML or JSON that passes [configsync.Gate] with its usual limits: maps of text keys, lists, and scalars.
// Numbers stay as they are written, as json.Number. The error holds no value of the document.
func Read(doc []byte) (any, error) {
	raw, err := configsync.Gate(doc, configsync.GateLimits{})
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("document is not valid after %d bytes", dec.InputOffset())
	}
	return v, nil
}

// Empty reports whether a document says nothing.
func Empty(doc []byte) bool { return len(bytes.TrimSpace(doc)) == 0 }
