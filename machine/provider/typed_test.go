// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// acme is a config with a field of each form.
type acme struct {
	provider.Kind
	Image   string            `json:"image,omitempty"`
	CPUs    int8              `json:"cpus,omitempty"`
	Memory  uint16            `json:"memory,omitempty"`
	Share   float64           `json:"share,omitempty"`
	Spot    *bool             `json:"spot,omitempty"`
	Key     []byte            `json:"key,omitempty"`
	Disks   []disk            `json:"disks,omitempty"`
	Pair    [2]int            `json:"pair,omitzero"`
	Labels  map[string]string `json:"labels,omitempty"`
	By      map[string]disk   `json:"by,omitempty"`
	Any     any               `json:"any,omitempty"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	Since   time.Time         `json:"since,omitzero"`
	Quoted  int               `json:"quoted,string,omitempty"`
	Ignored string            `json:"-"`
	Next    *acme             `json:"next,omitempty"`
	None    *struct{}         `json:"none,omitempty"`
	hidden  string
}

type disk struct {
	Size int
	extra
}

// extra is embedded, and not exported.
type extra struct {
	Type string `json:"type,omitempty"`
}

func (c *acme) Default() {
	if c.Image == "" {
		c.Image = "default"
	}
	c.hidden = "defaulted"
}

var errCPUs = errors.New(`field "cpus" is 99: want at most 64`)

func (c *acme) Validate() error {
	if c.CPUs == 99 {
		return errCPUs
	}
	if c.hidden != "defaulted" {
		return errors.New("was validated before it was defaulted")
	}
	return nil
}

// maker is a typed provider with four methods; what it was given is in got.
type maker struct {
	*stub
	got acme
}

func (m *maker) Create(ctx context.Context, r provider.CreateRequest, c acme) (provider.Instance, error) {
	m.got = c
	return m.stub.Create(ctx, r)
}

// four has the methods of a typed provider and no ability.
type four struct{ provider.TypedProvider[acme] }

// able has the typed abilities.
type able struct{ *maker }

func (a able) Plan(ctx context.Context, r provider.UpdateRequest, c acme) (provider.Plan, error) {
	a.maker.got = c
	return a.stub.Plan(ctx, r)
}

func (a able) Update(ctx context.Context, r provider.UpdateRequest, c acme) (provider.Progress, error) {
	a.maker.got = c
	return a.stub.Update(ctx, r)
}

func (a able) Validate(ctx context.Context, d provider.Desired, c acme) error {
	a.maker.got = c
	return a.stub.Validate(ctx, d)
}

func (a able) Adopt(ctx context.Context, r provider.AdoptRequest, c acme) (provider.Instance, error) {
	a.maker.got = c
	return a.stub.Adopt(ctx, r)
}

func (a able) Capacity(ctx context.Context, d provider.Desired, c acme) (map[string]string, error) {
	a.maker.got = c
	return a.stub.Capacity(ctx, d)
}

func (a able) Resize(ctx context.Context, name string, size int, d provider.Desired, c acme) error {
	a.maker.got = c
	return a.stub.Resize(ctx, name, size, d)
}

func acmeKind() provider.Kind { return provider.Kind{APIVersion: "acme.dev/v1", Kind: "Acme"} }

// with returns a config of the right kind with these fields.
func with(fields string) string {
	if fields != "" {
		fields = ", " + fields
	}
	return `{"apiVersion": "acme.dev/v1", "kind": "Acme"` + fields + `}`
}

// refused are configs with what the error has to say.
func refused() []struct{ name, config, want string } {
	const kind = `want an object with apiVersion "acme.dev/v1" and kind "Acme"`
	return []struct{ name, config, want string }{
		{"empty", "", "config is empty: " + kind},
		{"blank", " \n", "config is empty: " + kind},
		{"null", "null", "config is null: " + kind},
		{"a list", "[]", "config is a list: " + kind},
		{"a string", `"hunter2"`, "config is a string of 7 bytes: " + kind},
		{"not UTF-8", with("\"image\": \"\xff\""), "config is not valid UTF-8: want JSON"},
		{"cut off", `{"apiVersion"`, "config is not one JSON document, at byte 13 of 13: unexpected end of JSON input"},
		{"YAML", "apiVersion: acme.dev/v1", "config is not one JSON document, at byte 1 of 23: invalid character 'a'"},
		{"trailing data", with("") + " {}", "at byte 47 of 48: invalid character '{' after top-level value"},
		{"too deep", with(`"any": ` + strings.Repeat("[", 20000)), "exceeded max depth"},
		{"no version", `{"kind": "Acme"}`, `field "apiVersion" is missing: want "acme.dev/v1"`},
		{"no kind", `{"apiVersion": "acme.dev/v1"}`, `field "kind" is missing: want "Acme"`},
		{"another version", `{"apiVersion": "acme.dev/v2", "kind": "Acme", "new": 1}`, `field "apiVersion" is "acme.dev/v2": want "acme.dev/v1"`},
		{"another kind", `{"apiVersion": "acme.dev/v1", "kind": "Other"}`, `field "kind" is "Other": want "Acme"`},
		{"version of no form", `{"apiVersion": 1, "kind": "Acme"}`, `field "apiVersion" is a number of 1 digits: want "acme.dev/v1"`},
		{"kind is null", `{"apiVersion": "acme.dev/v1", "kind": null}`, `field "kind" is null: want "Acme"`},
		{"kind in another case", `{"apiVersion": "acme.dev/v1", "Kind": "Acme"}`, `field "kind" is missing: want "Acme"`},
		{"kind twice", with(`"kind": "Acme"`), `field "kind" stands twice: want it once`},

		{"unknown", with(`"imgae": "x"`), `field "imgae" is not known: want "any", "apiVersion", "by", "cpus", "disks"`},
		{"unknown below", with(`"disks": [{}, {"size": 1}]`), `field "disks[1].size" is not known: want "Size"`},
		{"unknown in a map", with(`"by": {"a": {"x": 1}}`), `field "by.a.x" is not known: want "Size", "type"`},
		{"unknown behind a pointer", with(`"next": {"next": {"x": 1}}`), `field "next.next.x" is not known`},
		{"unknown where nothing is", with(`"none": {"x": 1}`), `field "none.x" is not known: want no field there`},
		{"another case", with(`"Image": "x"`), `field "Image" is not known: want "image"`},
		{"name of the Go field", with(`"CPUs": 1`), `field "CPUs" is not known: want "cpus"`},
		{"no JSON field", with(`"Ignored": "x"`), `field "Ignored" is not known`},
		{"unexported", with(`"hidden": "x"`), `field "hidden" is not known`},
		{"unknown and long", with(`"` + strings.Repeat("x", 5000) + `": 1`), `field "...` + strings.Repeat("x", 200) + `" is not known`},
		{"twice", with(`"image": "x", "image": "x"`), `field "image" stands twice: want it once`},
		{"twice escaped", with(`"image": "x", "im\u0061ge": "x"`), `field "image" stands twice`},
		{"twice below", with(`"disks": [{"Size": 1, "Size": 2}]`), `field "disks[0].Size" stands twice`},
		{"twice in a map", with(`"labels": {"a": "b", "a": "b"}`), `field "labels.a" stands twice`},
		{"twice where anything goes", with(`"any": [{"a": {"b": 1, "b": 1}}]`), `field "any[0].a.b" stands twice`},
		{"twice in what decodes itself", with(`"raw": {"a": 1, "a": 1}`), `field "raw.a" stands twice`},

		{"number for a string", with(`"image": -12`), `field "image" is a negative number of 2 digits: want a string`},
		{"string for a number", with(`"cpus": "hunter2"`), `field "cpus" is a string of 7 bytes: want a whole number from -128 to 127`},
		{"too big", with(`"cpus": 128`), `field "cpus" is a number of 3 digits: want a whole number from -128 to 127`},
		{"negative", with(`"memory": -1`), `field "memory" is a negative number of 1 digits: want a whole number from 0 to 65535`},
		{"fraction", with(`"cpus": 1.5`), `field "cpus" is a number with a fraction or an exponent: want a whole number`},
		{"beyond floats", with(`"share": 1e999`), `field "share" is a number with a fraction or an exponent: want a number`},
		{"beyond any", with(`"any": {"x": 1e999}`), `field "any" is an object: want a value of type interface {}`},
		{"boolean", with(`"spot": "true"`), `field "spot" is a string of 4 bytes: want true or false`},
		{"bytes", with(`"key": "hunter2!"`), `field "key" is a string of 8 bytes: want a string in base64`},
		{"list for an object", with(`"labels": []`), `field "labels" is a list: want an object`},
		{"object for a list", with(`"disks": {}`), `field "disks" is an object: want a list`},
		{"string for a list", with(`"disks": "hunter2"`), `field "disks" is a string of 7 bytes: want a list`},
		{"boolean for an object", with(`"next": true`), `field "next" is a boolean: want an object`},
		{"value of a map", with(`"labels": {"a": 1}`), `field "labels.a" is a number of 1 digits: want a string`},
		{"too many", with(`"pair": [1, 2, 3]`), `field "pair[2]" is too much: want a list of 2`},
		{"time", with(`"since": "hunter2"`), `field "since" is a string of 7 bytes: want a valid time.Time`},
		{"quoted", with(`"quoted": 1`), `config document doesn't fit its type`},

		{"not valid", with(`"cpus": 99`), `config is not valid: field "cpus" is 99: want at most 64`},
	}
}

// R-MA-08: what is not understood is refused with the path, before anything is called.
func TestTypedRefuses(t *testing.T) {
	for _, c := range refused() {
		t.Run(c.name, func(t *testing.T) {
			m := able{&maker{stub: &stub{}}}
			p := provider.Typed(acmeKind(), m)
			for _, call := range methods(c.config) {
				if !call.decodes() {
					continue
				}
				if _, err := call.call(t.Context(), p); provider.ClassOf(err) != provider.InvalidConfig {
					t.Errorf("%s: %v, want InvalidConfig", call.name, err)
				}
			}
			d := desired(c.config)
			_, err := p.Create(t.Context(), provider.CreateRequest{Token: "t", Desired: d})
			if provider.ClassOf(err) != provider.InvalidConfig || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Create: %v\nwant InvalidConfig: %s", err, c.want)
			} else if !strings.HasPrefix(err.Error(), `InvalidConfig: create instance "t": config `) {
				t.Errorf("Create: %v\nwant the operation first", err)
			} else if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("Create: %v\nshows a value", err)
			}
			if calls := m.took(); calls != nil {
				t.Errorf("calls %q, want none", calls)
			}
		})
	}
	m := &maker{stub: &stub{}}
	_, err := provider.Typed(acmeKind(), m).Create(t.Context(), provider.CreateRequest{Desired: desired(with(`"cpus": 99`))})
	if !errors.Is(err, errCPUs) {
		t.Errorf("%v, want the config's own error in it", err)
	}
}

// R-MA-08: each call that has a config is given it, defaulted; the others never decode one.
func TestTypedPasses(t *testing.T) {
	m := able{&maker{stub: &stub{}}}
	p := provider.Typed(acmeKind(), m)
	config := with(`"cpus": 3, "disks": [{"Size": 7, "type": "ssd"}], "pair": [1], "quoted": "5", "next": {"apiVersion": "x", "spot": true}`)
	for _, call := range methods(config) {
		m.maker.got = acme{}
		if got, err := call.call(t.Context(), p); err != nil || got != call.back {
			t.Errorf("%s = %q, %v, want %q", call.name, got, err, call.back)
		}
		if calls := m.took(); !slices.Equal(calls, []string{call.seen}) {
			t.Errorf("%s: the provider has seen %q, want %q", call.name, calls, call.seen)
		}
		got := m.maker.got
		if !call.decodes() {
			if got.Image != "" {
				t.Errorf("%s has decoded a config", call.name)
			}
			continue
		}
		if got.CPUs != 3 || got.Image != "default" || len(got.Disks) != 1 || got.Disks[0] != (disk{7, extra{"ssd"}}) || got.Quoted != 5 || !*got.Next.Spot {
			t.Errorf("%s was given %+v", call.name, got)
		}
	}
}

// A typed provider has the abilities that it has in typed form, and can always validate.
func TestTypedAbilities(t *testing.T) {
	m := &maker{stub: &stub{}}
	if got := names(provider.AbilitiesOf(provider.Typed(acmeKind(), able{m}))); len(got) != 8 {
		t.Errorf("abilities %v, want all", got)
	}
	p := provider.Typed(acmeKind(), four{m})
	if got := names(provider.AbilitiesOf(p)); !slices.Equal(got, []string{"Validator"}) {
		t.Errorf("abilities %v, want Validator", got)
	}
	if err := provider.AbilitiesOf(p).Validator.Validate(t.Context(), desired(with(""))); err != nil {
		t.Errorf("Validate: %v", err)
	}
	err := provider.AbilitiesOf(p).Validator.Validate(t.Context(), desired(with(`"x": 1`)))
	if provider.ClassOf(err) != provider.InvalidConfig {
		t.Errorf("Validate: %v, want InvalidConfig", err)
	}
	if calls := m.took(); calls != nil {
		t.Errorf("calls %q, want none", calls)
	}
}

// creating is a typed provider of any config.
type creating[C any] struct {
	*stub
	got *C
}

func (c creating[C]) Create(_ context.Context, _ provider.CreateRequest, config C) (provider.Instance, error) {
	*c.got = config
	return provider.Instance{}, nil
}

func createTyped[C any](t *testing.T, config string) (C, error) {
	var got C
	p := provider.Typed(acmeKind(), creating[C]{&stub{}, &got})
	_, err := p.Create(t.Context(), provider.CreateRequest{Desired: desired(config)})
	return got, err
}

type itself struct{ kind string }

func (s *itself) UnmarshalJSON(data []byte) error {
	if strings.Contains(string(data), "bad") {
		return fmt.Errorf("can't read %s", data)
	}
	s.kind = "itself"
	return nil
}

// A config may be a pointer, a map, or what decodes itself; one without the fields of a kind is the programmer's error, not the user's.
func TestTypedConfigTypes(t *testing.T) {
	if got, err := createTyped[*acme](t, with(`"cpus": 3`)); err != nil || got.CPUs != 3 || got.hidden != "defaulted" {
		t.Errorf("pointer: %+v, %v", got, err)
	}
	if _, err := createTyped[*acme](t, with(`"cpus": 99`)); !errors.Is(err, errCPUs) {
		t.Errorf("pointer: %v, want the error of Validate", err)
	}
	if got, err := createTyped[map[string]any](t, with(`"cpus": 3`)); err != nil || got["cpus"] != 3.0 {
		t.Errorf("map: %v, %v", got, err)
	}
	if _, err := createTyped[map[string]any](t, with(`"a": 1, "a": 1`)); provider.ClassOf(err) != provider.InvalidConfig {
		t.Errorf("map: %v, want InvalidConfig", err)
	}
	if got, err := createTyped[itself](t, with("")); err != nil || got.kind != "itself" {
		t.Errorf("what decodes itself: %v, %v", got, err)
	}
	const want = "config document is an object: want a valid provider_test.itself"
	if _, err := createTyped[itself](t, with(`"bad": 1`)); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("what decodes itself: %v, want %s", err, want)
	}
	_, err := createTyped[disk](t, with(""))
	if provider.ClassOf(err) != provider.Internal || !strings.Contains(err.Error(), "provider_test.disk has no fields apiVersion and kind: embed provider.Kind") {
		t.Errorf("no kind: %v", err)
	}
}

// Of fields with one name the decoder's rules say which counts.
func TestTypedFieldsOfOneName(t *testing.T) {
	type below struct {
		Image int    `json:"image"`
		Zone  string `json:"zone"`
	}
	type config struct {
		below
		provider.Kind
		Image string `json:"image"`
	}
	if got, err := createTyped[config](t, with(`"image": "x", "zone": "z"`)); err != nil || got.Image != "x" || got.Zone != "z" {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := createTyped[config](t, with(`"image": 1`))
	const want = `field "image" is a number of 1 digits: want a string`
	if provider.ClassOf(err) != provider.InvalidConfig || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want InvalidConfig of image", err)
	}
}

// What is taken is what encoding/json takes of it, and nothing in it is lost: encoded again it decodes to the same.
func FuzzTyped(f *testing.F) {
	for _, c := range refused() {
		if len(c.config) < 1000 {
			f.Add([]byte(c.config))
		}
	}
	f.Add([]byte(with(`"cpus": 3, "by": {"a": {"Size": 1}}, "any": [1, null], "raw": {}, "since": "2026-01-02T03:04:05Z", "key": "aGk="`)))
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, err := createTyped[acme](t, string(doc))
		if err != nil {
			if provider.ClassOf(err) != provider.InvalidConfig || len(err.Error()) > 1500 {
				t.Errorf("%.2000v", err)
			}
			return
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := createTyped[acme](t, string(again))
		if err != nil {
			t.Fatalf("%s was taken, and encoded again it is not: %v", again, err)
		}
		if third, err := json.Marshal(twice); err != nil || string(third) != string(again) {
			t.Errorf("%s became %s: %v", again, third, err)
		}
	})
}
