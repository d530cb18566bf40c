// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/drain"
)

// maxPolicy bounds what is read of a policy file, in bytes.
const maxPolicy = 1 << 20

// LoadPolicy reads a drain.Policy in YAML or JSON. Durations are written as in Go, "10m". Fields that are not known, given twice or
// of another type are errors, with their place in the file.
func LoadPolicy(path string) (drain.Policy, error) {
	text, err := readFile(path)
	if err != nil {
		return drain.Policy{}, fmt.Errorf("reading the policy: %w", err)
	}
	policy, err := parsePolicy(text)
	if err == nil {
		err = policy.Validate()
	}
	if err != nil {
		return drain.Policy{}, fmt.Errorf("policy %q: %w", path, err)
	}
	return policy, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPolicy+1))
	if err == nil && len(text) > maxPolicy {
		err = fmt.Errorf("%q has more than %d bytes", path, maxPolicy)
	}
	return text, err
}

func parsePolicy(text []byte) (drain.Policy, error) {
	var policy drain.Policy
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return policy, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return policy, err
	}
	if tree == nil {
		return policy, errors.New("is empty: write {} for the policy that changes nothing")
	}
	var found findings
	found.node("", tree, reflect.TypeFor[drain.Policy]())
	if err := errors.Join(found...); err != nil {
		return policy, err
	}
	if err := json.Unmarshal(raw, &policy); err != nil {
		return policy, err
	}
	for i, e := range policy.Escalation {
		if e.Step != drain.StepDelete {
			err = fmt.Errorf("escalation[%d].step: is %q: the only step that this command can take is %s", i, e.Step, drain.StepDelete)
		}
	}
	return policy, err
}

// findings are what is wrong with a document.
type findings []error

func (f *findings) say(path, format string, args ...any) {
	if path == "" {
		path = "the document"
	}
	*f = append(*f, fmt.Errorf(path+": "+format, args...))
}

// node says where a value is not for the type: what the decoder would pass over, or not find again.
func (f *findings) node(path string, v any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case v == nil:
	case t == reflect.TypeFor[time.Duration]():
		f.duration(path, v)
	case t.Kind() == reflect.Struct && len(fields(t)) > 0:
		f.object(path, v, t)
	case t.Kind() == reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			f.say(path, "must be a list")
		}
		for i := range list {
			f.node(fmt.Sprintf("%s[%d]", path, i), list[i], t.Elem())
		}
	}
}

func (f *findings) duration(path string, v any) {
	text, ok := v.(string)
	d, err := time.ParseDuration(text)
	if !ok || err != nil || d < 0 {
		f.say(path, "is %v: must be a duration, such as 30s or 10m", v)
	}
}

func (f *findings) object(path string, v any, t reflect.Type) {
	object, ok := v.(map[string]any)
	if !ok {
		f.say(path, "must have fields")
		return
	}
	known := fields(t)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		field, ok := known[name]
		if !ok {
			f.say(at, "is not known; known are %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			continue
		}
		f.node(at, object[name], field)
	}
}

// fields gives the types of a struct's fields by their name in JSON.
func fields(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			known[name] = field.Type
		}
	}
	return known
}
