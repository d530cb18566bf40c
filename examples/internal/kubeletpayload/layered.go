// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeletpayload

import (
	"encoding/json"
	"strings"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/layers"
)

// merged decodes what becomes of a config on this node.
func (c codec) merged(key string, o configsync.Object) (Config, error) {
	stack, err := c.o.Around()
	if err != nil {
		return Config{}, &configsync.DecodeError{Key: key, Err: err}
	}
	cfg, _, err := layers.Codec(stack, c.inner).Decode(key, o)
	return cfg, err
}

// Origins implements configsync.Origins: the fields that are not from the config itself.
func (c codec) Origins(key string, o configsync.Object) (map[string]string, error) {
	if c.o.Around == nil {
		return nil, nil
	}
	stack, err := c.o.Around()
	if err != nil {
		return nil, err
	}
	m, err := stack.Of(key, o)
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
			origins[dotted(f.Path)] = f.Layer
		}
	}
	return origins, nil
}

// dotted writes a path of package fields as an explanation does: names with dots between, a list as one field.
func dotted(path string) string {
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

// Text is what the kubelet is to read of a config that c, of [Codec], has decoded. ok is false where that is no file at all: a local config
// beside a directory of drop-ins, where the kubelet reads it from its own file. A config that nothing is laid around is read byte for byte.
func Text(c configsync.Codec[*Config], key string, o configsync.Object) (text []byte, ok bool, err error) {
	own, known := c.(codec)
	switch {
	case known && own.o.DropIn && o.UID == "":
		return nil, false, nil
	case !known || own.o.DropIn || own.o.Around == nil:
		return []byte(o.Data[key]), true, nil
	}
	stack, err := own.o.Around()
	if err != nil {
		return nil, false, err
	}
	m, err := stack.Of(key, o)
	return m.Doc, err == nil, err
}
