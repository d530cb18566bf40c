// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

const someUID = "0b2e9a34-5c5e-4f0b-9b5b-3f8f1a5f7a10"

// R-CS-14: the whole object is kept. C-14: what a newer server adds is no reason to refuse it.
// L-CS-14.
func TestParseObjectKeepsWhatItDoesNotKnow(t *testing.T) {
	raw := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"kube-system","name":"a.b","uid":"` + someUID +
		`","resourceVersion":"7","managedFields":[{"x":[1]}],"Labels":{}},"immutable":true,"data":{"kubelet":"a: 1\n","Kubelet":""},` +
		`"binaryData":{"b":"AA=="},"future":{"deep":[{}]}}`)
	got, err := configsync.ParseObject(raw)
	want := configsync.Object{
		Namespace: "kube-system", Name: "a.b", UID: someUID, ResourceVersion: "7", Immutable: true,
		Data: map[string]string{"kubelet": "a: 1\n", "Kubelet": ""}, Raw: raw,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ParseObject = %+v, %v; want %+v", got, err, want)
	}
	wantRef := lkg.Ref{Namespace: "kube-system", Name: "a.b", UID: someUID, ResourceVersion: "7", Key: "kubelet", Digest: got.Digest()}
	if ref := got.Ref("kubelet"); ref != wantRef {
		t.Errorf("Ref = %+v, want %+v", ref, wantRef)
	}
}

func TestParseObjectTakesLittle(t *testing.T) {
	for _, raw := range []string{
		`{"metadata":{}}`, `{"metadata":{"name":null},"data":null,"immutable":null,"kind":null}`, " {\"metadata\":{}}\n",
	} {
		if o, err := configsync.ParseObject([]byte(raw)); err != nil || len(o.Data) != 0 {
			t.Errorf("ParseObject(%s) = %+v, %v; want an object without data", raw, o, err)
		}
	}
}

// refusedObject is an object and what the error says of it.
type refusedObject struct{ raw, problem string }

func refusedObjects() map[string]refusedObject {
	meta := func(s string) string { return `{"metadata":{` + s + `},"data":{"kubelet":"` + secret + `"}}` }
	data := func(s string) string { return `{"metadata":{},"data":{` + s + `}}` }
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":""`, i)
	}
	return map[string]refusedObject{
		"empty":                  {"", "must be a JSON object"},
		"null":                   {"null", "must be a JSON object"},
		"list":                   {`["` + secret + `"]`, "must be a JSON object"},
		"cut off":                {`{"metadata":{},"data":{"kubelet":"` + secret, "not valid JSON"},
		"bad value":              {`{"x":` + secret + `}`, "not valid JSON"},
		"more behind it":         {`{"metadata":{}} {}`, "more behind its end"},
		"a bracket behind it":    {`{"metadata":{}}]`, "more behind its end"},
		"not UTF-8":              {`{"metadata":{"name":"` + "\xff" + `"}}`, "UTF-8"},
		"no metadata":            {`{"data":{}}`, "object.metadata must be"},
		"other kind":             {`{"kind":"Secret","metadata":{}}`, `must be "ConfigMap"`},
		"other version":          {`{"apiVersion":"v2","metadata":{}}`, `must be "v1"`},
		"kind twice":             {`{"kind":"ConfigMap","kind":"ConfigMap","metadata":{}}`, `"kind" stands twice`},
		"case variant of kind":   {`{"Kind":"ConfigMap","metadata":{}}`, `"Kind" differs from "kind"`},
		"case variant of data":   {`{"metadata":{},"data":{},"DATA":{"kubelet":"` + secret + `"}}`, "in case only"},
		"folded variant of data": {`{"metadata":{"re\u017fourceVersion":"1"}}`, "in case only"},
		"case variant of uid":    {meta(`"uid":"a","UID":"b"`), `"metadata.UID" differs from "metadata.uid"`},
		"uid twice":              {meta(`"uid":"a","uid":"b"`), `"metadata.uid" stands twice`},
		"uid is a number":        {meta(`"uid":12345`), `"metadata.uid" must be a string`},
		"uid climbs":             {meta(`"uid":"../etc"`), "metadata.uid"},
		"uid has a slash":        {meta(`"uid":"a/b"`), "metadata.uid"},
		"uid is long":            {meta(`"uid":"` + strings.Repeat("a", 101) + `"`), "metadata.uid"},
		"namespace climbs":       {meta(`"namespace":".."`), "metadata.namespace"},
		"namespace has a dot":    {meta(`"namespace":"a.b"`), "metadata.namespace"},
		"name climbs":            {meta(`"name":"../a"`), "metadata.name"},
		"name with empty part":   {meta(`"name":"a..b"`), "metadata.name"},
		"name with bad part":     {meta(`"name":"a.-b"`), "metadata.name"},
		"immutable is a string":  {`{"metadata":{},"immutable":"` + secret + `"}`, `"immutable" must be a boolean`},
		"data is a list":         {`{"metadata":{},"data":["` + secret + `"]}`, "data must be a JSON object"},
		"value is a number":      {data(`"kubelet":31337`), `the value of "kubelet" must be a string`},
		"value is null":          {data(`"kubelet":null`), `the value of "kubelet" must be a string`},
		"value is an object":     {data(`"kubelet":{"a":"` + secret + `"}`), `the value of "kubelet" must be a string`},
		"entry twice":            {data(`"kubelet":"` + secret + `","kubelet":"b"`), `key "kubelet" stands twice`},
		"key climbs":             {data(`"../x":"` + secret + `"`), `key "../x"`},
		"key is a dot":           {data(`".":"` + secret + `"`), `key "."`},
		"key is two dots":        {data(`"..data":"` + secret + `"`), `key "..data"`},
		"key is empty":           {data(`"":"` + secret + `"`), `key ""`},
		"key has a slash":        {data(`"a/b":"` + secret + `"`), `key "a/b"`},
		"key has a NUL":          {data(`"a\u0000":"` + secret + `"`), `key "a\x00"`},
		"key looks like ASCII":   {data(`"kubel\u0435t":"` + secret + `"`), "key"},
		"key is long":            {data(`"` + strings.Repeat("k", 254) + `":"` + secret + `"`), "key"},
		"too many keys":          {data(strings.Join(many, ",")), "more than 1000 keys"},
		"too much data":          {data(`"a":"` + strings.Repeat("x", 1<<20) + `"`), "1048577 bytes of keys and values, at most 1048576"},
		"too long":               {`{"metadata":{},"x":"` + strings.Repeat("x", 4<<20) + `"}`, "at most 4194304"},
		"too deep":               {`{"x":` + strings.Repeat("[", 100_000), "not valid JSON"},
	}
}

// R-CS-13: no name is a path. R-CS-28: it must be a ConfigMap. Nothing of data comes out in an error.
// S-CS-01.
func TestParseObjectRefuses(t *testing.T) {
	for name, c := range refusedObjects() {
		t.Run(name, func(t *testing.T) {
			o, err := configsync.ParseObject([]byte(c.raw))
			if err == nil {
				t.Fatalf("ParseObject = %+v, want an error with %q", o, c.problem)
			}
			if s := err.Error(); !strings.Contains(s, c.problem) || strings.Contains(s, secret) || strings.Contains(s, "31337") || len(s) > 400 {
				t.Errorf("error %q, want one with %q and nothing of data", s, c.problem)
			}
		})
	}
}

// The digest is part of what users write into their sources: its values are fixed for ever. They were computed by
//
//	printf FRAMES | sha256sum
func TestDigestIsFixed(t *testing.T) {
	for want, data := range map[string]map[string]string{
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855": nil,
		"sha256:341fc652f21e4559d8efd7f7c15b0a6052b242233589c5f0c20797fb9c76e0fc": {"b": "", "a": "x"},
		"sha256:d1a7ec451358b910c35e7e038699c95e484ed6050e1a258b556d06e526788f60": {"kubelet": "kind: X\n", "ümläut": "ß"},
	} {
		if got := (configsync.Object{Data: data, UID: "u", ResourceVersion: "1"}).Digest(); got != want {
			t.Errorf("digest of %v = %s, want %s", data, got, want)
		}
	}
}

// No two contents share a digest by the way they are cut into keys and values.
func TestDigestSeparatesKeysFromValues(t *testing.T) {
	seen := map[string]map[string]string{}
	for _, data := range []map[string]string{
		{}, {"": ""}, {"a": ""}, {"": "a"}, {"a": "b"}, {"ab": ""}, {"a": "", "b": ""}, {"a": " 1 b 0 \n1 c 0 "}, {"a": "b", "c": "d"},
		{"a": "b1 c 1 d\n"}, {"a": "b\n1 c 1 d"}, {"A": "b"}, {"a": "B"},
	} {
		digest := configsync.DigestOf(data)
		if other, ok := seen[digest]; ok {
			t.Errorf("%v and %v have the same digest", data, other)
		}
		seen[digest] = data
	}
}

// R-CS-83: a name that follows the content.
// L-CS-40.
func TestHashedNameFollowsContent(t *testing.T) {
	data := map[string]string{"b": "", "a": "x"}
	name := configsync.HashedName("kubelet", data)
	if want := "kubelet-" + strings.TrimPrefix(configsync.DigestOf(data), "sha256:")[:10]; name != want {
		t.Errorf("HashedName = %q, want %q", name, want)
	}
	if other := configsync.HashedName("kubelet", map[string]string{"a": "x"}); other == name {
		t.Errorf("other content has the same name %q", other)
	}
	subdomain := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	for _, base := range []string{strings.Repeat("a", 253), strings.Repeat("a", 241) + "." + strings.Repeat("b", 11), strings.Repeat("a", 241) + "-b"} {
		if got := configsync.HashedName(base, data); len(got) > 253 || !subdomain.MatchString(got) {
			t.Errorf("HashedName of a base of %d bytes = %q (%d bytes), want a name of at most 253", len(base), got, len(got))
		}
	}
}

// What one strict and one naive reader both accept, they understand alike.
func FuzzParseObject(f *testing.F) {
	f.Add([]byte(`{"kind":"ConfigMap","metadata":{"namespace":"a","name":"b","uid":"c"},"immutable":true,"data":{"k":"v"}}`))
	f.Add([]byte(`{"metadata":{},"data":{"a":"\ud800","b":"\u0000"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := configsync.ParseObject(raw)
		if err != nil {
			return
		}
		var naive struct {
			Metadata  struct{ Namespace, Name, UID, ResourceVersion string }
			Immutable bool
			Data      map[string]string
		}
		if err := json.Unmarshal(raw, &naive); err != nil {
			t.Fatalf("a plain decoder refuses what was accepted: %v", err)
		}
		m := naive.Metadata
		if m.Namespace != o.Namespace || m.Name != o.Name || m.UID != o.UID || m.ResourceVersion != o.ResourceVersion ||
			naive.Immutable != o.Immutable || !maps.Equal(naive.Data, o.Data) {
			t.Fatalf("read %+v, a plain decoder reads %+v", o, naive)
		}
		if strings.ContainsAny(o.UID+o.Namespace+o.Name, "/\\\x00") || strings.Contains(o.UID, "..") {
			t.Fatalf("a name is a path: %+v", o)
		}
	})
}
