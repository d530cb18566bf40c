// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
)

// period decodes itself, as metav1.Duration does, and shows the value in its errors.
type period struct{ time.Duration }

func (p *period) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	d, err := time.ParseDuration(s)
	p.Duration = d
	return err
}

// level decodes itself from text.
type level int

func (l *level) UnmarshalText(b []byte) error {
	if string(b) != "high" {
		return errors.New("no level: " + string(b))
	}
	*l = 1
	return nil
}

type meta struct {
	Kind string `json:"kind,omitempty"`
}

type inner struct {
	MaxPods int32             `json:"maxPods"`
	Labels  map[string]string `json:"labels"`
	Next    *inner            `json:"next"`
}

type sample struct {
	meta   `json:",inline"`
	Name   *string          `json:"name"`
	Inner  inner            `json:"inner"`
	List   []inner          `json:"list"`
	ByName map[string]inner `json:"byName"`
	Wait   period           `json:"wait"`
	Waits  []*period        `json:"waits"`
	Level  level            `json:"level"`
	Levels map[level]int    `json:"levels"`
	Any    any              `json:"any"`
	Raw    json.RawMessage  `json:"raw"`
	Bytes  []byte           `json:"bytes"`
	Text   int              `json:"text,string"`
	Fixed  [2]inner         `json:"fixed"`
	Plain  bool
	Hidden string `json:"-"`
	Dash   string `json:"-,"` //nolint:staticcheck // the odd name is the point
	unseen string
}

func TestDecodeStrictTakesWhatTheTypeHas(t *testing.T) {
	doc := `{"kind":"K","name":null,"inner":{"maxPods":1,"labels":{"a":"x","A":"y"},"next":{"next":null}},"list":[{"maxPods":2},{}],
		"byName":{"MaxPods":{"maxPods":3}},"wait":"5s","waits":["1m",null],"level":"high","levels":{"high":7},
		"any":{"Kind":[{"x":1}]},"raw":{"KIND":1},"bytes":"aGk=","text":"5","fixed":[{},{"maxPods":4}],"Plain":true,"-":"dash"}`
	var got sample
	if err := configsync.DecodeStrict([]byte(doc), &got); err != nil {
		t.Fatal(err)
	}
	var want sample
	if err := json.Unmarshal([]byte(doc), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) || got.Fixed[1].MaxPods != 4 || got.Wait.Duration != 5*time.Second || got.unseen != "" {
		t.Errorf("DecodeStrict = %+v, want %+v", got, want)
	}
}

// The package encoding/json takes "A" for "a". The error has the path of the field and nothing of the value.
// S-CS-03.
func TestDecodeStrictRefuses(t *testing.T) {
	for name, c := range map[string]struct{ doc, problem string }{
		"unknown":             {`{"x":"` + secret + `"}`, `field "x" is not known`},
		"case variant":        {`{"Name":"` + secret + `"}`, `field "Name" is not known: want "name"`},
		"folded variant":      {`{"li` + "\u017f" + `t":[]}`, `is not known: want "list"`},
		"embedded variant":    {`{"Kind":"` + secret + `"}`, `field "Kind" is not known: want "kind"`},
		"Go name":             {`{"ByName":{}}`, `is not known: want "byName"`},
		"untagged variant":    {`{"plain":true}`, `is not known: want "Plain"`},
		"hidden":              {`{"Hidden":"` + secret + `"}`, `"Hidden" is not known`},
		"unexported":          {`{"unseen":"` + secret + `"}`, `"unseen" is not known`},
		"name of an embedded": {`{"meta":{}}`, `"meta" is not known`},
		"deep": {`{"inner":{"next":{"maxpods":31337}}}`,
			`field "inner.next.maxpods" is not known: want "maxPods"`},
		"in a list":         {`{"list":[{},{"y":"` + secret + `"}]}`, `field "list[1].y"`},
		"in an array":       {`{"fixed":[{"y":"` + secret + `"}]}`, `field "fixed[0].y"`},
		"in a map":          {`{"byName":{"n":{"y":"` + secret + `"}}}`, `field "byName.n.y"`},
		"twice":             {`{"name":"a","name":"` + secret + `"}`, `field "name" stands twice`},
		"twice in a map":    {`{"inner":{"labels":{"a":"","a":"` + secret + `"}}}`, `field "inner.labels.a" stands twice`},
		"twice in anything": {`{"any":{"a":"","a":"` + secret + `"}}`, `field "any.a" stands twice`},
		"wrong type": {`{"inner":{"maxPods":"` + secret + `"}}`,
			`field "inner.maxPods" is a string of 6 bytes: want a whole number from -2147483648 to 2147483647`},
		"number too big": {`{"inner":{"maxPods":31337000000}}`,
			`field "inner.maxPods" is a number of 11 digits: want a whole number from -2147483648 to 2147483647`},
		"wrong document": {`["` + secret + `"]`, `document is a list: want an object`},
		"decodes itself": {`{"wait":"` + secret + `"}`,
			`field "wait" is a string of 6 bytes: want a valid configsync_test.period`},
		"in a list of those": {`{"waits":["1s","` + secret + `"]}`,
			`field "waits[1]" is a string of 6 bytes: want a valid configsync_test.period`},
		"from text": {`{"level":"` + secret + `"}`,
			`field "level" is a string of 6 bytes: want a valid configsync_test.level`},
		"text as key":    {`{"levels":{"` + secret + `":1}}`, `a field has a value of the wrong form`},
		"quoted number":  {`{"text":"` + secret + `"}`, ``},
		"not base64":     {`{"bytes":"?` + secret + `"}`, ``},
		"more behind it": {`{} {}`, "not valid JSON"},
		"cut off":        {`{"name":"` + secret, "not valid JSON"},
		"empty":          {``, "not valid JSON"},
		"too deep":       {strings.Repeat(`{"any":`, 20_000) + "1" + strings.Repeat("}", 20_000), "nested too deeply"},
	} {
		t.Run(name, func(t *testing.T) {
			var got sample
			err := configsync.DecodeStrict([]byte(c.doc), &got)
			if err == nil {
				t.Fatalf("DecodeStrict = %+v, want an error with %q", got, c.problem)
			}
			if s := err.Error(); !strings.Contains(s, c.problem) || strings.Contains(s, secret) || strings.Contains(s, "31337") {
				t.Errorf("error %q, want one with %q and nothing of the document", s, c.problem)
			}
		})
	}
}

func TestDecodeStrictNeedsAPointer(t *testing.T) {
	for _, into := range []any{nil, sample{}, (*sample)(nil)} {
		if err := configsync.DecodeStrict([]byte("{}"), into); err == nil || !strings.Contains(err.Error(), "must be a pointer") {
			t.Errorf("decoding into %T: %v", into, err)
		}
	}
}

// Shapes in which encoding/json decides by rules of its own which field a name means, or that none does.
type (
	Base   struct{ A, B string }
	Other  struct{ B, C string }
	Outer  struct{ Base }
	Tagged struct {
		X string `json:"B"`
	}
	private struct{ P string }
	Self    struct {
		*Self
		S string
	}
	Late struct {
		Base
		A int
	}
	Ambiguous struct {
		Base
		Other
	}
	ByTag struct {
		Base
		Tagged
	}
	Hides struct { // B is ambiguous among the first two, and so hides the deeper one
		Ambiguous
		Deep struct{ Base }
		Outer
	}
	Twice struct {
		Outer
		Second struct{ Outer } `json:"second"`
		*Base
	}
	Mixed struct {
		private
		*Other
		Named Base   `json:"named,omitempty"`
		Odd   string `json:",omitempty"`
		Base  `json:"base"`
		error
	}
)

// The names that are taken are those that encoding/json gives a field, and no others.
func TestDecodeStrictKnowsTheFieldsThatCount(t *testing.T) {
	names := []string{"A", "B", "C", "X", "P", "S", "Base", "base", "named", "Named", "Odd", "Outer", "Deep", "second", "Self", "Tagged", "private", "error", "Other"}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Base](), reflect.TypeFor[Outer](), reflect.TypeFor[Self](), reflect.TypeFor[Late](), reflect.TypeFor[Ambiguous](),
		reflect.TypeFor[ByTag](), reflect.TypeFor[Hides](), reflect.TypeFor[Twice](), reflect.TypeFor[Mixed](),
	} {
		for _, name := range names {
			doc := []byte(`{"` + name + `":null}`)
			dec := json.NewDecoder(bytes.NewReader(doc))
			dec.DisallowUnknownFields()
			known := dec.Decode(reflect.New(typ).Interface()) == nil && exact(typ, name)
			err := configsync.DecodeStrict(doc, reflect.New(typ).Interface())
			if (err == nil) != known {
				t.Errorf("%v: field %q: %v, but encoding/json knows it: %t", typ, name, err, known)
			}
		}
	}
}

// exact reports whether name, in this case, is the name of a field: encoding/json writes names as they are.
func exact(typ reflect.Type, name string) bool {
	v := reflect.New(typ).Elem()
	fill(v, 0)
	raw, err := json.Marshal(v.Interface())
	var members map[string]json.RawMessage
	return err == nil && json.Unmarshal(raw, &members) == nil && members[name] != nil
}

// fill sets what would be left out when it is empty.
func fill(v reflect.Value, depth int) {
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case !f.CanSet() || depth > 2:
		case f.Kind() == reflect.String:
			f.SetString("x")
		case f.Kind() == reflect.Struct:
			fill(f, depth+1)
		case f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Struct && f.Type().Elem() != v.Type():
			f.Set(reflect.New(f.Type().Elem()))
			fill(f.Elem(), depth+1)
		}
	}
}

// What is taken is what encoding/json takes, decoded to the same value.
func FuzzDecodeStrict(f *testing.F) {
	for _, doc := range []string{
		`{"kind":"K","inner":{"maxPods":1,"next":{"labels":{"a":"b"}}},"list":[{}],"byName":{"x":{}}}`,
		`{"wait":"5s","waits":[null,"1h"],"level":"high","levels":{"high":1},"text":"5","bytes":"aGk="}`,
		`{"Kind":"K"}`, `{"any":[{"a":1,"a":2}]}`, `{"fixed":[{},{},{"maxPods":1}],"raw":1,"-":""}`, `null`, `{"name":"\ud800"}`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var got, want sample
		if err := configsync.DecodeStrict(doc, &got); err != nil {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(doc))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("DecodeStrict gives %+v, encoding/json %+v, %v", got, want, err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(doc, &members); err != nil {
			t.Fatal(err)
		}
		for name := range members {
			if !slices.Contains(sampleFields, name) {
				t.Fatalf("field %q was taken", name)
			}
		}
	})
}

var sampleFields = []string{
	"kind", "name", "inner", "list", "byName", "wait", "waits", "level", "levels", "any", "raw", "bytes", "text", "fixed", "Plain", "-",
}
