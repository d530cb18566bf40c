// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// HasFields reports whether values of a type, or what it points to, may have fields of these names. What is
// no struct, or decodes itself, may.
func HasFields(t reflect.Type, names ...string) bool {
	t = pointedTo(t)
	if t == nil || t.Kind() != reflect.Struct || decodesItself(t) {
		return true
	}
	fields := fieldsOf(t)
	return !slices.ContainsFunc(names, func(name string) bool { return fields[name] == nil })
}

// fieldsOf gives the types of the fields of a struct by the names that encoding/json knows them by, those of
// embedded structs included. Of several fields with one name the least deep one counts, and among those the
// one that has the name by a tag; where that leaves more than one, none counts.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	visited := map[reflect.Type]bool{}
	for level := []reflect.Type{t}; len(level) > 0; {
		own, below := fieldsOfAll(level, visited)
		for _, t := range level { // only now: a type that is embedded twice at one level makes its names ambiguous
			visited[t] = true
		}
		for name, candidates := range own {
			if _, taken := fields[name]; !taken {
				fields[name] = dominant(candidates)
			}
		}
		level = below
	}
	maps.DeleteFunc(fields, func(_ string, t reflect.Type) bool { return t == nil })
	return fields
}

// fieldsOfAll gives the fields of several structs by name, and what is embedded in them.
func fieldsOfAll(structs []reflect.Type, visited map[reflect.Type]bool) (byName map[string][]named, below []reflect.Type) {
	byName = map[string][]named{}
	for _, t := range structs {
		if visited[t] {
			continue
		}
		own, embedded := fieldsOfOne(t)
		for _, f := range own {
			byName[f.name] = append(byName[f.name], f)
		}
		below = append(below, embedded...)
	}
	return byName, below
}

// named is a field as encoding/json sees it.
type named struct {
	name   string
	tagged bool
	t      reflect.Type
}

// dominant returns the type of the field that counts, or nil. An ambiguous name hides deeper ones all the same.
func dominant(candidates []named) reflect.Type {
	var tagged []named
	for _, c := range candidates {
		if c.tagged {
			tagged = append(tagged, c)
		}
	}
	switch {
	case len(tagged) == 1:
		return tagged[0].t
	case len(candidates) == 1:
		return candidates[0].t
	}
	return nil
}

// fieldsOfOne gives the fields of t alone, and the structs embedded in it, whose fields count as its own.
func fieldsOfOne(t reflect.Type) (own []named, embedded []reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		inner := f.Type
		if f.Anonymous && inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-", !f.IsExported() && !(f.Anonymous && inner.Kind() == reflect.Struct):
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			embedded = append(embedded, inner)
		default:
			own = append(own, named{cmp.Or(name, f.Name), name != "", valueType(f.Type, options)})
		}
	}
	return own, embedded
}

// valueType is what a value of a field has to fit. Only encoding/json knows what is within a quoted value.
func valueType(t reflect.Type, options string) reflect.Type {
	if slices.Contains(strings.Split(options, ","), "string") {
		return reflect.TypeFor[any]()
	}
	return t
}
