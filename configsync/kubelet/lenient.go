// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/layers"
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
// not known are no error. The error holds no value of the document. defaults is what a kubelet with a directory of
// drop-ins adds to the document before it lays the first drop-in over it, or empty if the document cannot be read.
func Lenient(doc []byte) (own, defaults []byte, err error) {
	if own, err = readLenient(doc); err == nil {
		defaults = fillDefaults(own)
	}
	return own, defaults, err
}

func readLenient(doc []byte) ([]byte, error) {
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
		if hasPath(v, name) {
			own = append(own, strconv.Quote(name))
		}
	}
	return own
}

// hasPath reports whether a path such as "logging.options[0].x" leads to a value. Names may have dots themselves.
func hasPath(v any, path string) bool {
	if path == "" {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if rest, ok := strings.CutPrefix(path, name); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') &&
				hasPath(e, strings.TrimPrefix(rest, ".")) {
				return true
			}
		}
	case []any:
		index, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(index)
		return ok && err == nil && i >= 0 && i < len(v) && hasPath(v[i], strings.TrimPrefix(rest, "."))
	}
	return false
}

// Origins implements configsync.Origins: the fields that are not from the config itself.
func (c codec) Origins(key string, o configsync.Object) (map[string]string, error) {
	if c.o.Around == nil {
		return nil, nil
	}
	m, err := c.mergeLayers(key, o)
	if err != nil {
		return nil, err
	}
	own := layers.Shared
	if o.UID == "" {
		own = layers.Init
	}
	origins := map[string]string{}
	for _, f := range m.Origins {
		if f.Layer != own {
			origins[dottedPath(f.Path)] = f.Layer
		}
	}
	return origins, nil
}

// dottedPath writes a path of package fields as an explanation does: names with dots between, a list as one field.
func dottedPath(path string) string {
	var b strings.Builder
	for path != "" {
		name, rest, bracket := strings.Cut(path, "[")
		b.WriteString(name)
		if !bracket {
			break
		}
		var key string
		d := json.NewDecoder(strings.NewReader(rest))
		if d.Decode(&key) != nil {
			break // a place in a list
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(key)
		path = rest[d.InputOffset()+1:]
	}
	return b.String()
}

// Text returns the file that the kubelet is to read for a config that c, made by [Codec], has decoded. ok is false if
// there is no file: for a local config beside a directory of drop-ins, which the kubelet reads from its own file. A
// config with nothing laid around it is returned byte for byte.
func Text(c configsync.Codec[*Config], key string, o configsync.Object) (text []byte, ok bool, err error) {
	own, known := c.(codec)
	switch {
	case known && own.o.DropIn && o.UID == "":
		return nil, false, nil
	case !known || own.o.DropIn || own.o.Around == nil:
		return []byte(o.Data[key]), true, nil
	}
	m, err := own.mergeLayers(key, o)
	return m.Doc, err == nil, err
}

// The kubelet's defaults that are not the same once another field is set.
const (
	defaultReportFrequency = 5 * time.Minute
	defaultEnforcement     = "pods"
)

// fillDefaults returns what a kubelet with a directory of drop-ins adds to its own file before it lays the first
// drop-in over it: its defaults. Only those are in the result that a later drop-in would change: the kubelet decides
// serializeImagePulls before it sees maxParallelImagePulls of a drop-in, and nodeStatusReportFrequency before
// nodeStatusUpdateFrequency. An empty list of enforceNodeAllocatable is lost, and the default takes its place. If the
// file cannot be read, the result is empty: decoding says why.
func fillDefaults(own []byte) []byte {
	var c struct {
		SerializeImagePulls       *bool
		MaxParallelImagePulls     *int32
		NodeStatusReportFrequency metav1.Duration
		NodeStatusUpdateFrequency metav1.Duration
		EnforceNodeAllocatable    []string
	}
	raw, err := toJSON(own)
	if err != nil || checkHead(raw) != nil || json.Unmarshal(raw, &c) != nil {
		return nil
	}
	filled := map[string]any{}
	if c.SerializeImagePulls == nil {
		filled["serializeImagePulls"] = c.MaxParallelImagePulls == nil || *c.MaxParallelImagePulls < 2
	}
	if c.NodeStatusReportFrequency.Duration == 0 {
		filled["nodeStatusReportFrequency"] = defaultReportFrequency.String()
		if d := c.NodeStatusUpdateFrequency.Duration; d != 0 {
			filled["nodeStatusReportFrequency"] = d.String()
		}
	}
	if c.EnforceNodeAllocatable != nil && len(c.EnforceNodeAllocatable) == 0 {
		filled["enforceNodeAllocatable"] = []string{defaultEnforcement}
	}
	doc, err := json.Marshal(filled)
	if err != nil {
		return nil // not for booleans and texts
	}
	return doc
}
