// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

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

var uidPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

var digestPattern = regexp.MustCompile(`^sha256:[a-f0-9]{64}$`)

// SourceToSpec checks src and returns what it names. A nil src is empty: the Spec is nil. Any other src is either correct or a
// [*configsync.InvalidError], whose field is a path inside src. generation is that of the object that carries src, or 0.
func SourceToSpec(src *v1alpha1.NodeConfigSource, generation int64) (*configsync.Spec, error) {
	if src == nil {
		return nil, nil
	}
	if src.ConfigMapRef == nil {
		return nil, &configsync.InvalidError{Problem: noSubfield}
	}
	ref := *src.ConfigMapRef
	for _, check := range refChecks {
		if problem := check.problem(ref); problem != "" {
			return nil, &configsync.InvalidError{Field: strings.TrimSuffix(configMapRef+"."+check.field, "."), Problem: problem}
		}
	}
	spec := &configsync.Spec{
		Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, Key: ref.Key, Digest: ref.Digest, Generation: generation,
	}
	if ref.Policy == v1alpha1.PolicyFollow {
		spec.Policy = configsync.Follow
	}
	return spec, nil
}

// refChecks are what a reference must fulfil; the first problem is reported.
var refChecks = []struct {
	field   string
	problem func(v1alpha1.ConfigMapRef) string
}{
	{"kind", func(r v1alpha1.ConfigMapRef) string {
		return oneOf(r.Kind, "", "ConfigMap")
	}},
	{"namespace", func(r v1alpha1.ConfigMapRef) string {
		return required(r.Namespace, validation.IsDNS1123Label)
	}},
	{"name", func(r v1alpha1.ConfigMapRef) string {
		return required(r.Name, validation.IsDNS1123Subdomain)
	}},
	{"policy", func(r v1alpha1.ConfigMapRef) string {
		return oneOf(string(r.Policy), "", string(v1alpha1.PolicyPin), string(v1alpha1.PolicyFollow))
	}},
	{"uid", func(r v1alpha1.ConfigMapRef) string {
		return optional(r.UID, uidPattern.MatchString(r.UID) && !strings.Contains(r.UID, ".."),
			"must be a UID that can be a file name: lower-case letters, digits, '-', '_' and single dots, at most 128")
	}},
	{"key", func(r v1alpha1.ConfigMapRef) string {
		return optional(r.Key, len(validation.IsConfigMapKey(r.Key)) == 0, "must be a key that a ConfigMap can have")
	}},
	{"digest", func(r v1alpha1.ConfigMapRef) string {
		return optional(r.Digest, digestPattern.MatchString(r.Digest), `must be "sha256:" and 64 hexadecimal digits in lower case`)
	}},
	{"", func(r v1alpha1.ConfigMapRef) string {
		if r.UID == "" && r.Digest == "" && r.Policy != v1alpha1.PolicyFollow {
			return "must have a uid or a digest, or the policy Follow: a name alone may come to mean another object"
		}
		return ""
	}},
}

func oneOf(value string, allowed ...string) string {
	if slices.Contains(allowed, value) {
		return ""
	}
	return fmt.Sprintf("must be %s or absent, got %q", strings.Join(allowed[1:], " or "), clip(value, maxQuoted))
}

func required(value string, problems func(string) []string) string {
	if value == "" {
		return "must be non-empty"
	}
	if p := problems(value); len(p) > 0 {
		return fmt.Sprintf("%q: %s", clip(value, maxQuoted), p[0])
	}
	return ""
}

func optional(value string, ok bool, want string) string {
	if value == "" || ok {
		return ""
	}
	return fmt.Sprintf("%s, got %q", want, clip(value, maxQuoted))
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
