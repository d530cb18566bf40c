// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/belayproject/belay/configsync"
)

// toJSON reads a document as a kubelet does, which lets through what configsync.Gate does not: anchors, tags, keys
// that are written twice.
func toJSON(doc []byte) (raw []byte, err error) {
	if len(doc) > configsync.MaxObject {
		return nil, fmt.Errorf("the document has more than %d bytes", configsync.MaxObject)
	}
	defer func() { // the parser is not ours, and a panic on a document would keep the node down
		if recover() != nil {
			raw, err = nil, errors.New("the document brings the parser to a panic")
		}
	}()
	if raw, err = yaml.ToJSON(doc); err != nil {
		return nil, errors.New("the document is not valid YAML") // the parser's own error repeats values
	}
	return raw, nil
}

// Lenient returns a document of others, such as kubeadm's config.yaml or a drop-in, in a form that configsync.Gate
// lets through: unchanged if the gate does so already, and else as JSON with what the kubelet reads. The error says
// why the kubelet would not read it: it is no YAML, too large, or names another apiVersion or kind. Fields that are
// not known are no error. The error holds no value of the document.
func Lenient(doc []byte) ([]byte, error) {
	raw, gateErr := configsync.Gate(doc, configsync.GateLimits{Bytes: configsync.MaxObject})
	if gateErr == nil {
		return doc, checkHead(raw)
	}
	raw, err := toJSON(doc)
	if err != nil || string(raw) == "null" {
		return nil, gateErr
	}
	return raw, checkHead(raw)
}

// unknownIn returns the fields that a payload has of those that the kubelet does not know.
func unknownIn(payload []byte, names []string) (own []string) {
	if len(names) == 0 || payload == nil {
		return nil
	}
	var v any
	if raw, err := toJSON(payload); err != nil || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	for _, name := range names {
		if has(v, name) {
			own = append(own, strconv.Quote(name))
		}
	}
	return own
}

// has reports whether a path such as "logging.options[0].x" leads to a value. Names may have dots themselves.
func has(v any, path string) bool {
	if path == "" {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if rest, ok := strings.CutPrefix(path, name); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') && has(e, strings.TrimPrefix(rest, ".")) {
				return true
			}
		}
	case []any:
		index, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(index)
		return ok && err == nil && i >= 0 && i < len(v) && has(v[i], strings.TrimPrefix(rest, "."))
	}
	return false
}
