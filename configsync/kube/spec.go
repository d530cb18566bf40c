// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/v1alpha1"
)

// The texts of an invalid source. That for no subfield is one that people know and search for.
const (
	noSubfield    = "exactly one subfield must be non-nil, but all were nil"
	manySubfields = "exactly one subfield must be non-nil, but %d were: %s"
	configMapRef  = "configMapRef"
)

// maxQuoted is how much of a wrong value an error shows, in bytes.
const maxQuoted = 256

// SourceToSpec checks src and returns what it names. A nil src is empty: the Spec is nil. Any other src is either correct or a
// [*configsync.InvalidError], whose field is a path inside src. generation is that of the object that carries src, or 0.
func SourceToSpec(src *v1alpha1.NodeConfigSource, generation int64) (*configsync.Spec, error) {
	if src == nil {
		return nil, nil
	}
	if src.ConfigMapRef == nil {
		return nil, &configsync.InvalidError{Problem: noSubfield}
	}
	ref := src.ConfigMapRef
	spec := configsync.Spec{
		Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, Key: ref.Key, Digest: ref.Digest, Generation: generation,
	}
	switch {
	case ref.Kind != "" && ref.Kind != "ConfigMap":
		return nil, wrong("kind", "%q must be %q or absent", clip(ref.Kind, maxQuoted), "ConfigMap")
	case ref.Namespace == "": // also where all is empty: that subfield is set, and Validate can't tell
		return nil, wrong("namespace", "must not be empty")
	case ref.Policy == v1alpha1.PolicyFollow:
		spec.Policy = configsync.Follow
	case ref.Policy != "" && ref.Policy != v1alpha1.PolicyPin:
		return nil, wrong("policy", "%q must be %q, %q or absent", clip(string(ref.Policy), maxQuoted), v1alpha1.PolicyPin, v1alpha1.PolicyFollow)
	}
	if err := spec.Validate(); err != nil {
		return nil, below(configMapRef, err)
	}
	if spec.UID == "" && spec.Digest == "" && spec.Policy == configsync.Pin {
		return nil, wrong("uid", "it must be set, or digest, or policy must be %q: a name alone may come to mean another object", v1alpha1.PolicyFollow)
	}
	return &spec, nil
}

func wrong(field, problem string, args ...any) error {
	return &configsync.InvalidError{Field: configMapRef + "." + field, Problem: fmt.Sprintf(problem, args...)}
}

// parseSource decodes a NodeConfigSource. Other than the type it sees subfields of later versions: with one of those the source is
// invalid, never empty and never partly understood.
func parseSource(raw []byte) (*v1alpha1.NodeConfigSource, error) {
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, &configsync.InvalidError{Problem: "it must be a JSON object: " + err.Error()}
	}
	if fields == nil {
		return nil, nil
	}
	var set []string
	for name, value := range fields {
		if value != nil {
			set = append(set, name)
		}
	}
	slices.Sort(set)
	switch {
	case len(set) == 0:
		return nil, &configsync.InvalidError{Problem: noSubfield}
	case len(set) > 1:
		return nil, &configsync.InvalidError{Problem: fmt.Sprintf(manySubfields, len(set), clip(strings.Join(set, ", "), maxQuoted))}
	case set[0] != configMapRef:
		return nil, &configsync.InvalidError{Field: clip(set[0], maxQuoted), Problem: "it is a kind of source that this version doesn't know; it knows " + configMapRef}
	}
	src := &v1alpha1.NodeConfigSource{}
	if err := json.Unmarshal(raw, src); err != nil {
		return nil, &configsync.InvalidError{Field: configMapRef, Problem: "its fields must be strings: " + err.Error()}
	}
	return src, nil
}

// below puts the path of a source before the field that an error names. The source as a whole has no field: its text stands alone.
func below(path string, err error) error {
	var invalid *configsync.InvalidError
	if !errors.As(err, &invalid) || invalid.Field == "" {
		return err
	}
	return &configsync.InvalidError{Field: path + "." + invalid.Field, Problem: invalid.Problem}
}

// specFrom is parseSource and SourceToSpec for a source that lies at path.
func specFrom(raw []byte, path string, generation int64) (*configsync.Spec, error) {
	src, err := parseSource(raw)
	if err != nil {
		return nil, below(path, err)
	}
	spec, err := SourceToSpec(src, generation)
	return spec, below(path, err)
}
