// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func decode(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// definition is one with the given versions.
func definition(versions string) string {
	return `{kind: CustomResourceDefinition, metadata: {name: things}, spec: {versions: [` + versions + `]}}`
}

// version is one whose objects have the given properties.
func version(name, properties string) string {
	return `{name: ` + name + `, schema: {openAPIV3Schema: {type: object, properties: ` + properties + `}}}`
}

func role(rules string) string {
	return `{kind: ClusterRole, metadata: {name: thing}, rules: [` + rules + `]}`
}

// An object of the cluster that has more than ours is newer, and the first thing that ours lacks is named. One that has
// less, or says the same in other words, is not.
func TestCheckNewer(t *testing.T) {
	const (
		small  = `{spec: {properties: {a: {type: string}}}}`
		large  = `{spec: {properties: {a: {type: string}, b: {type: string}}}}`
		list   = `{spec: {items: {properties: {a: {type: string}}}}}`
		list2  = `{spec: {items: {properties: {a: {type: string}, b: {type: string}}}}}`
		byName = `{spec: {additionalProperties: {properties: {a: {type: string}, b: {type: string}}}}}`
		open   = `{spec: {x-kubernetes-preserve-unknown-fields: true}}`
		nodes  = `{apiGroups: [""], resources: [nodes], verbs: [get]}`
	)
	for name, c := range map[string]struct{ ours, live, missing string }{
		"the same definition": {definition(version("v1", small)), definition(version("v1", small)), ""},
		"an older definition": {definition(version("v1", large)), definition(version("v1", small)), ""},
		"a version more": {
			definition(version("v1", small) + "," + version("v2", small)), definition(version("v1", small)), "",
		},
		"a field": {definition(version("v1", small)), definition(version("v1", large)), "field v1.spec.b"},
		"a version": {
			definition(version("v1", small)), definition(version("v1", small) + "," + version("v2", small)), "version v2",
		},
		"a field of an item": {
			definition(version("v1", list)), definition(version("v1", list2)), "field v1.spec[].b",
		},
		"a field of a value": {
			definition(version("v1", `{spec: {additionalProperties: {type: object}}}`)),
			definition(version("v1", byName)), "field v1.spec[].a",
		},
		"items":                {definition(version("v1", `{spec: {}}`)), definition(version("v1", list)), "field v1.spec[]"},
		"what is unknown":      {definition(version("v1", large)), definition(version("v1", open)), "field v1.spec.*"},
		"ours prunes nothing":  {definition(version("v1", open)), definition(version("v1", large)), ""},
		"the same role":        {role(nodes), role(nodes), ""},
		"a role of fewer":      {role(nodes), role(""), ""},
		"a role in two rules":  {role(`{apiGroups: [""], resources: [nodes, pods], verbs: [get]}`), role(nodes), ""},
		"a role of everything": {role(`{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}`), role(nodes), ""},
		"a verb": {
			role(nodes), role(nodes + `,{apiGroups: [""], resources: [nodes], verbs: [patch]}`),
			`right "patch" on "nodes" of group ""`,
		},
		"a name is not all": {
			role(`{apiGroups: [""], resources: [nodes], resourceNames: [one], verbs: [get]}`), role(nodes),
			`right "get" on "nodes" of group ""`,
		},
		"a named right": {
			role(nodes), role(`{apiGroups: [a], resources: [nodes], resourceNames: [one], verbs: [get]}`),
			`right "get" on "nodes" named "one" of group "a"`,
		},
		"a URL":        {role(nodes), role(`{nonResourceURLs: [/livez], verbs: [get]}`), `right "get" on "/livez"`},
		"another kind": {`{kind: Namespace, metadata: {name: a}}`, `{kind: Namespace, metadata: {name: a}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkNewer(decode(t, c.ours), decode(t, c.live))
			var newer *NewerError
			switch {
			case c.missing == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case c.missing != "" && (!errors.As(err, &newer) || newer.Missing != c.missing):
				t.Errorf("got %v, want a NewerError with %s", err, c.missing)
			}
		})
	}
}
