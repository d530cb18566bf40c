// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// A NewerError reports a definition or role in the cluster with something that this version of belay lacks. That object
// is not changed; objects before it may have been applied.
type NewerError struct {
	Kind, Name string
	// Missing is the first thing that this version lacks, such as "field v1alpha1.spec.pace" or `right "get" on "nodes"
	// of group ""`.
	Missing string
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s %q has the %s, which this version of belay lacks: a newer belay has installed it, "+
		"or another client has added to it", e.Kind, e.Name, e.Missing)
}

// checkNewer returns a [NewerError] where ours would narrow live: a version or a field of a CustomResourceDefinition,
// or a right of a ClusterRole. Server-side apply replaces each of these lists as a whole.
func checkNewer(ours, live *unstructured.Unstructured) error {
	var missing string
	var err error
	switch ours.GetKind() {
	case "CustomResourceDefinition":
		missing, err = missingField(ours, live)
	case "ClusterRole":
		missing, err = missingRight(ours, live)
	}
	if err != nil {
		return fmt.Errorf("reading %s %q: %w", ours.GetKind(), ours.GetName(), err)
	}
	if missing == "" {
		return nil
	}
	return &NewerError{Kind: ours.GetKind(), Name: ours.GetName(), Missing: missing}
}

// missingField returns the first version or field of the definition live that ours lacks.
func missingField(ours, live *unstructured.Unstructured) (string, error) {
	our, err := schemasOf(ours)
	if err != nil {
		return "", err
	}
	their, err := schemasOf(live)
	if err != nil {
		return "", err
	}
	for _, version := range slices.Sorted(maps.Keys(their)) {
		schema, has := our[version]
		if !has {
			return "version " + version, nil
		}
		if path := missingPath(version, schema, their[version]); path != "" {
			return "field " + path, nil
		}
	}
	return "", nil
}

// schemasOf returns the schema of each version of a definition.
func schemasOf(definition *unstructured.Unstructured) (map[string]map[string]any, error) {
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]any{}
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _, err := unstructured.NestedString(version, "name")
		if err != nil {
			return nil, err
		}
		if all[name], _, err = unstructured.NestedMap(version, "schema", "openAPIV3Schema"); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// missingPath returns the path of the first field that the schema live keeps and ours would prune.
func missingPath(path string, ours, live map[string]any) string {
	const unknown = "x-kubernetes-preserve-unknown-fields"
	if ours[unknown] == true {
		return ""
	}
	if live[unknown] == true {
		return path + ".*"
	}
	our, their := mapIn(ours, "properties"), mapIn(live, "properties")
	for _, name := range slices.Sorted(maps.Keys(their)) {
		if _, has := our[name]; !has {
			return path + "." + name
		}
		if missing := missingPath(path+"."+name, mapIn(our, name), mapIn(their, name)); missing != "" {
			return missing
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		inner := path + "[]"
		if _, has := live[key]; !has {
			continue
		}
		if _, has := ours[key]; !has {
			return inner
		}
		if missing := missingPath(inner, mapIn(ours, key), mapIn(live, key)); missing != "" {
			return missing
		}
	}
	return ""
}

func mapIn(m map[string]any, key string) map[string]any {
	inner, _ := m[key].(map[string]any)
	return inner
}

// missingRight returns the first right of the role live that no rule of ours gives.
func missingRight(ours, live *unstructured.Unstructured) (string, error) {
	var our, their rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(ours.Object, &our); err != nil {
		return "", err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &their); err != nil {
		return "", err
	}
	for _, rule := range their.Rules {
		for _, r := range rightsOf(rule) {
			if !slices.ContainsFunc(our.Rules, r.givenBy) {
				return r.String(), nil
			}
		}
	}
	return "", nil
}

// A right is the smallest part of a rule: one verb on one resource or URL. Without a name it is for all of them.
type right struct {
	verb, group, resource, name, url string
}

func (r right) String() string {
	switch {
	case r.url != "":
		return fmt.Sprintf("right %q on %q", r.verb, r.url)
	case r.name != "":
		return fmt.Sprintf("right %q on %q named %q of group %q", r.verb, r.resource, r.name, r.group)
	}
	return fmt.Sprintf("right %q on %q of group %q", r.verb, r.resource, r.group)
}

func rightsOf(rule rbacv1.PolicyRule) []right {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []right
	for _, verb := range rule.Verbs {
		for _, url := range rule.NonResourceURLs {
			all = append(all, right{verb: verb, url: url})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					all = append(all, right{verb: verb, group: group, resource: resource, name: name})
				}
			}
		}
	}
	return all
}

func (r right) givenBy(rule rbacv1.PolicyRule) bool {
	if !hasOrAll(rule.Verbs, r.verb) {
		return false
	}
	if r.url != "" {
		return hasOrAll(rule.NonResourceURLs, r.url)
	}
	return hasOrAll(rule.APIGroups, r.group) && hasOrAll(rule.Resources, r.resource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.name))
}

func hasOrAll(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}
