// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/strictjson"
)

// DecodeStrict decodes one JSON document into the struct that into points to. A field that the struct doesn't have is an error, and
// so is one whose name differs in case, or that stands twice; encoding/json takes both. Types that decode themselves, such as
// metav1.Duration, judge their own values. The error names the field's path, never a value. After an error what into points to is
// undefined.
func DecodeStrict(doc []byte, into any) error {
	if err := option.CheckRequired("configsync.DecodeStrict", "into", into, "must be a pointer to a struct"); err != nil {
		return err
	}
	return strictjson.Decode(doc, into)
}
