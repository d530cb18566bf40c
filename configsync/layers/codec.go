// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"maps"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// A Stack is what lies below and above the configs of a source on one node. What is empty says nothing; the zero Stack leaves every config as
// it is. It must not change while it is used: a node reads its files once.
type Stack struct {
	Defaults, Init, Node, Flags []byte
}

// Merge lays the stack around the config of the source; nil is none.
func (s Stack) Merge(shared []byte) (Merged, error) {
	return Merge(Layer{layerDefaults, s.Defaults}, Layer{Init, s.Init}, Layer{Shared, shared}, Layer{Node, s.Node}, Layer{layerFlags, s.Flags})
}

// Of merges around the entry key of an object. The local config of a node, an object without a UID, takes the place of the init layer.
func (s Stack) Of(key string, o configsync.Object) (Merged, error) {
	if o.UID == "" {
		s.Init = []byte(o.Data[key])
		return s.Merge(nil)
	}
	return s.Merge([]byte(o.Data[key]))
}

// Codec has the merged document decoded in place of an object's entry, so that Validators judge what will be used. The limits of the
// trial are those of the object. An entry that is missing or empty is left to the inner codec, which refuses it.
func Codec[T any](s Stack, inner configsync.Codec[T]) configsync.Codec[T] { return codec[T]{s, inner} }

type codec[T any] struct {
	stack Stack
	inner configsync.Codec[T]
}

// Decode implements configsync.Codec.
func (c codec[T]) Decode(key string, o configsync.Object) (T, lkg.Limits, error) {
	if o.Data[key] != "" {
		m, err := c.stack.Of(key, o)
		if err != nil {
			var none T
			return none, lkg.Limits{}, &configsync.DecodeError{Key: key, Err: err}
		}
		o.Data = maps.Clone(o.Data)
		o.Data[key] = string(m.Doc)
	}
	return c.inner.Decode(key, o)
}
