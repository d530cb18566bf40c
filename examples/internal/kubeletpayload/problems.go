// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeletpayload

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A FieldError says which field of a config is wrong and what would be right. It never holds the value.
type FieldError struct {
	// Field is the path of the field, as in the document: "evictionHard[memory.available]".
	Field string
	// Want completes "Field …": "must be between 0 and 65535".
	Want string
}

// Error is the path and what would be right, in one line.
func (e *FieldError) Error() string { return e.Field + " " + e.Want }

// Problems are all the wrong fields of one config, in the order of the rules.
type Problems []*FieldError

// Error gives all problems in one line, so that it fits a condition and a table.
func (p Problems) Error() string {
	texts := make([]string, 0, len(p))
	for _, e := range p {
		texts = append(texts, e.Error())
	}
	return strings.Join(texts, "; ")
}

// Unwrap gives the single problems to errors.As.
func (p Problems) Unwrap() []error {
	errs := make([]error, 0, len(p))
	for _, e := range p {
		errs = append(errs, e)
	}
	return errs
}

// Fields gives the paths of the wrong fields that err names, for a tool that marks them.
func Fields(err error) []string {
	var p Problems
	if !errors.As(err, &p) {
		return nil
	}
	fields := make([]string, 0, len(p))
	for _, e := range p {
		fields = append(fields, e.Field)
	}
	return fields
}

// err is nil where there is no problem.
func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// need adds a problem unless ok.
func (p *Problems) need(ok bool, field, want string) {
	if !ok {
		*p = append(*p, &FieldError{Field: field, Want: want})
	}
}

// between checks low <= v <= high.
func between[N cmp.Ordered](p *Problems, field string, v, low, high N) {
	p.need(v >= low && v <= high, field, fmt.Sprintf("must be between %v and %v", low, high))
}

// atLeast checks low <= v.
func atLeast[N cmp.Ordered](p *Problems, field string, v, low N) {
	p.need(v >= low, field, fmt.Sprintf("must be %v or more", low))
}

// optionalAtLeast checks low <= *v where the document sets it; absence is the kubelet's default, which is right.
func optionalAtLeast[N cmp.Ordered](p *Problems, field string, v *N, low N) {
	if v != nil {
		atLeast(p, field, *v, low)
	}
}

// optional checks low <= *v <= high where the document sets it.
func optional[N cmp.Ordered](p *Problems, field string, v *N, low, high N) {
	if v != nil {
		between(p, field, *v, low, high)
	}
}

// oneOf checks that v is one of the words; empty means the kubelet's default.
func oneOf[S ~string](p *Problems, field string, v S, words ...S) {
	quoted := make([]string, 0, len(words))
	for _, w := range words {
		quoted = append(quoted, fmt.Sprintf("%q", string(w)))
	}
	p.need(v == "" || slices.Contains(words, v), field, "must be one of "+strings.Join(quoted, ", "))
}

// sorted gives the keys of m in order, so that the same config always has the same errors.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// valueOr is *v, or the kubelet's default where the document says nothing.
func valueOr[N any](v *N, def N) N {
	if v == nil {
		return def
	}
	return *v
}
