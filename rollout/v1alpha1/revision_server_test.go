// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// R-RO-33: a revision says what it is, once and for all. Another content takes another object, and has another digest.
func TestRevisionIsImmutable(t *testing.T) {
	s := serve(t, v1alpha1.RevisionKind, v1alpha1.RevisionsResource)
	alone := sole{}
	d := `"digest":"` + digest + `"`
	config := `{` + d + `,"configMapRef":{"namespace":"a","name":"b",` + d
	const immutable = "a revision is immutable"
	for _, c := range []struct{ name, spec, want string }{
		{"opaque", `{` + d + `,"opaque":"os-1.45"}`, ""},
		{"config", config + `}}`, ""},
		{"all fields", config + `,"uid":"c","key":"k","policy":"Pin","kind":"ConfigMap"},"class":"NonIntrusive","irreversible":true,"minAge":"36h30m"}`, ""},
		{"no digest", `{"opaque":"x"}`, "digest: Required value"},
		{"other digest", `{"digest":"md5:0f","opaque":"x"}`, "should match"},
		{"nothing", `{` + d + `}`, "exactly one of configMapRef and opaque"},
		{"both", config + `},"opaque":"x"}`, "exactly one of configMapRef and opaque"},
		{"config without digest", `{` + d + `,"configMapRef":{"namespace":"a","name":"b","uid":"c"}}`, "must have the digest of the revision"},
		{"config by name", `{` + d + `,"configMapRef":{"namespace":"a","name":"b"}}`, "a name alone may come to mean another object"},
		{"followed", config + `,"policy":"Follow"}}`, "must not have the policy Follow"},
		{"unknown class", `{` + d + `,"opaque":"x","class":"intrusive"}`, "Unsupported value"},
		{"negative age", `{` + d + `,"opaque":"x","minAge":"-1h"}`, "not negative"},
		{"no age", `{` + d + `,"opaque":"x","minAge":"1 day"}`, "minAge"},
		{"endless age", `{` + d + `,"opaque":"x","minAge":"99999999999h"}`, "minAge"},
	} {
		t.Run(c.name, func(t *testing.T) { alone.judge(t, s.create("checked", c.spec, dryRun...), c.want) })
	}
	s.must(s.create("v2", `{`+d+`,"opaque":"os-1.45"}`))
	for _, c := range []struct{ name, patch, want string }{
		{"label", `{"metadata":{"labels":{"a":"b"}}}`, ""},
		{"content", `{"spec":{"opaque":"os-1.46"}}`, immutable},
		{"digest", `{"spec":{"digest":"sha256:` + zeros + `"}}`, immutable},
		{"class", `{"spec":{"class":"NonIntrusive"}}`, immutable},
		{"irreversible", `{"spec":{"irreversible":true}}`, immutable},
		{"age", `{"spec":{"minAge":"1h"}}`, immutable},
		{"left out", `{"spec":{"opaque":null,"configMapRef":{"namespace":"a","name":"b",` + d + `}}}`, immutable},
		{"no spec", `{"spec":null}`, "spec: Required value"},
	} {
		t.Run("change/"+c.name, func(t *testing.T) { alone.judge(t, s.merge("v2", c.patch, dryRun), c.want) })
	}
	alone.each(t, v1alpha1.RevisionKind)
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
