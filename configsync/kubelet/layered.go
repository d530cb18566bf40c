// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"strings"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/layers"
)

// Origins implements configsync.Origins: the fields that are not from the config itself.
func (c codec) Origins(key string, o configsync.Object) (map[string]string, error) {
	if c.o.Around == nil {
		return nil, nil
	}
	m, err := c.merge(key, o)
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
	m, err := own.merge(key, o)
	return m.Doc, err == nil, err
}
