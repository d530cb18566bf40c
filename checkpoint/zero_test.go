// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/checkpoint"
)

// A Store that Open has not made answers every call with one error, and none of them hangs: in a bubble a hang is a failure.
func TestStoreThatWasNotOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, s := range map[string]*checkpoint.Store{"zero": {}, "nil": nil} {
			for call, f := range map[string]func() error{
				"Put":    func() error { return s.Put(t.Context(), "stream", []byte("payload")) },
				"empty":  func() error { return s.Put(t.Context(), "stream", nil) },
				"Get":    func() error { _, err := s.Get(t.Context(), "stream"); return err },
				"Delete": func() error { return s.Delete(t.Context(), "stream") },
				"List":   func() error { _, err := s.List(t.Context(), ""); return err },
				"Close":  func() error { return s.Close() },
			} {
				if err := f(); !errors.Is(err, checkpoint.ErrNotOpen) {
					t.Errorf("%s of a %s Store: %v, want ErrNotOpen", call, name, err)
				}
			}
		}
		if (&checkpoint.Store{}).Durable() {
			t.Error("a zero Store says that it is durable")
		}
	})
}
