// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
)

// hostileObject is a ConfigMap of which some parts are as somebody wants them.
func hostileObject(parts map[string]string) ([]byte, error) {
	part := func(name, usual string) string {
		if p, ok := parts[name]; ok {
			return p
		}
		return usual
	}
	return json.Marshal(map[string]any{
		"kind": part("kind", "ConfigMap"), "apiVersion": part("apiVersion", "v1"), "data": map[string]string{part("key", "k"): "v"},
		"metadata": map[string]any{
			"namespace": part("namespace", "a"), "name": part("name", "b"), "uid": part("uid", someUID), "resourceVersion": part("resourceVersion", "1"),
		},
	})
}

// FuzzHostileObject gives a real store whatever calls itself an object, under the UID that it names, as a Syncer would:
// no file beside the store comes, goes or changes, and what is accepted lies below checkpoints/. S-CS-01.
func FuzzHostileObject(f *testing.F) {
	for _, s := range []string{"a", "..", "../x", "/etc/passwd", "a/b", "a\x00b", "..data", strings.Repeat("k", 300), "kubel\u0435t", "a\\b", "CON", "%2e%2e"} {
		f.Add(s, someUID)
		f.Add("kubelet", s)
	}
	base := f.TempDir()
	if err := os.WriteFile(filepath.Join(base, "canary"), []byte("untouched"), 0o600); err != nil {
		f.Fatal(err)
	}
	store, err := checkpoint.Open(filepath.Join(base, "state"), checkpoint.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := store.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, key, uid string) {
		raw, err := hostileObject(map[string]string{"uid": uid, "key": key})
		if err != nil {
			return // no JSON
		}
		o, err := configsync.ParseObject(raw)
		if err == nil {
			err = configsync.ValidateUID(o.UID)
		}
		if err != nil {
			return
		}
		if err := store.Put(t.Context(), "checkpoints/"+o.UID, raw); err != nil {
			t.Fatalf("S-CS-01: UID %q is accepted, and can't be stored: %v", o.UID, err)
		}
		if got, err := os.ReadFile(filepath.Join(base, "canary")); err != nil || string(got) != "untouched" {
			t.Fatalf("S-CS-01: key %q, UID %q: the file beside the store is another one", key, uid)
		}
		outside := slices.DeleteFunc(names(t, base), func(n string) bool { return n == "canary" || n == "state" })
		if dirs := names(t, filepath.Join(base, "state", "checkpoints")); len(outside) > 0 || len(dirs) == 0 {
			t.Fatalf("S-CS-01: key %q, UID %q: %q beside the store, %q in it", key, uid, outside, dirs)
		}
		if err := store.Delete(t.Context(), "checkpoints/"+o.UID); err != nil {
			t.Fatal(err)
		}
	})
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// moves says whether a character can do more than stand in a line: control characters, and those that turn the
// direction of text.
func moves(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// FuzzErrorsAreOneLine: whatever stands for a name, a key, a limit or a field, the error that comes of it is valid text
// of one line, in which nothing moves the cursor, clears the screen, or turns the text around. S-CS-11.
func FuzzErrorsAreOneLine(f *testing.F) {
	for _, s := range []string{"a", "\x1b[2J", "\x1b]0;title\x07", "a\nb", "a\r", "\u202egnp.exe", "\u2066x", "\x00", "\xff", "\u0085", "\u2028", "%s%n", strings.Repeat("\x1b", 300)} {
		f.Add(s)
	}
	codec := configsync.YAML[struct {
		A string `json:"a"`
	}](configsync.YAMLOptions{})
	f.Fuzz(func(t *testing.T, s string) {
		var errs []error
		for _, spec := range []configsync.Spec{
			{Namespace: s, Name: "b", UID: someUID}, {Namespace: "a", Name: s, UID: someUID}, {Namespace: "a", Name: "b", UID: s},
			{Namespace: "a", Name: "b", UID: someUID, Key: s}, {Namespace: "a", Name: "b", Digest: s}, {Namespace: "a", Name: "b", UID: someUID, Policy: configsync.Policy(s)},
		} {
			errs = append(errs, spec.Validate())
		}
		errs = append(errs, configsync.ValidateUID(s))
		for _, hostile := range []string{"kind", "apiVersion", "namespace", "name", "uid", "resourceVersion", "key"} {
			raw, err := hostileObject(map[string]string{hostile: s})
			if err != nil {
				continue // no JSON
			}
			_, err = configsync.ParseObject(raw)
			errs = append(errs, err)
		}
		for _, data := range []map[string]string{
			{"k": s}, {"k": s + ": 1"}, {"k": `{"` + s + `":1}`}, {"k": "a: x", configsync.KeyTrialDuration: s}, {"k": "a: x", configsync.KeyCrashLoopThreshold: s}, {s: "a: x"},
		} {
			_, _, err := codec.Decode("k", configsync.Object{Data: data})
			errs = append(errs, err)
		}
		_, _, err := codec.Decode(s, configsync.Object{Data: map[string]string{}})
		for _, err := range append(errs, err) {
			if err != nil && (strings.ContainsFunc(err.Error(), moves) || len(err.Error()) > 2000) {
				t.Errorf("S-CS-11: %q gives the error %q", s, err)
			}
		}
	})
}

// TestCompressedConfigIsNotTaken: a gzip of zeros that fits into a ConfigMap is a config in no form: neither as text,
// nor in base64, nor as binary data; and it is refused without being unpacked. S-CS-04.
func TestCompressedConfigIsNotTaken(t *testing.T) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(w, zeros{}, 128<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	codec := configsync.YAML[map[string]any](configsync.YAMLOptions{})
	text := base64.StdEncoding.EncodeToString(packed.Bytes())
	for name, raw := range map[string]any{
		"as text": map[string]any{"data": map[string]string{"k": packed.String()}}, "in base64": map[string]any{"data": map[string]string{"k": text}},
		"as binary data": map[string]any{"binaryData": map[string]string{"k": text}},
	} {
		object, ok := raw.(map[string]any)
		if !ok {
			t.Fatal("no object")
		}
		object["kind"], object["apiVersion"], object["metadata"] = "ConfigMap", "v1", map[string]any{"namespace": "a", "name": "b", "uid": someUID, "resourceVersion": "1"}
		whole, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		o, err := configsync.ParseObject(whole)
		if err == nil {
			_, _, err = codec.Decode("k", o)
		}
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("S-CS-04: a gzip %s is taken for a config", name)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
			t.Errorf("S-CS-04: refusing a gzip %s took %d bytes of memory, want at most 32 MiB", name, took)
		}
	}
}

type zeros struct{}

// Read gives zeros.
func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestHostileSizesAreRefusedAtOnce: configs beyond the limits of size, depth, nodes and keys are refused before they
// are decoded: 32 MiB of memory are enough, and some times as long as it takes to read the object as JSON, on the same
// machine at the same time. S-CS-02.
func TestHostileSizesAreRefusedAtOnce(t *testing.T) {
	many := map[string]string{}
	for i := range 1001 {
		many["k"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+time.Duration(i).String()] = ""
	}
	codec := configsync.YAML[map[string]any](configsync.YAMLOptions{})
	for name, data := range map[string]map[string]string{
		"large": {"k": "a: " + strings.Repeat("x", 1<<20)}, "deep": {"k": strings.Repeat("[", 1<<19)}, "deep maps": {"k": strings.Repeat("{a: ", 1<<17)},
		"many nodes": {"k": "[" + strings.Repeat("1,", 400_000) + "1]"}, "many keys": many, "block depth": {"k": strings.Repeat("- ", 1<<18)},
	} {
		raw, err := json.Marshal(map[string]any{
			"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"namespace": "a", "name": "b", "uid": someUID, "resourceVersion": "1"}, "data": data,
		})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		o, err := configsync.ParseObject(raw)
		if err == nil {
			_, _, err = codec.Decode("k", o)
		}
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("S-CS-02: %q is taken", name)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
			t.Errorf("S-CS-02: refusing %q took %d bytes, want at most 32 MiB", name, grown)
		}
		refuse := func() {
			if o, err := configsync.ParseObject(raw); err == nil {
				_, _, _ = codec.Decode("k", o)
			}
		}
		read := func() {
			var any map[string]any
			_ = json.Unmarshal(raw, &any)
		}
		refusing, reading := fastest(refuse), fastest(read)
		for range 20 { // others may have been in the way of each of five: the least of more is nearer to what it takes
			if refusing <= 20*reading {
				break
			}
			refusing, reading = min(refusing, fastest(refuse)), min(reading, fastest(read))
		}
		if refusing > 20*reading {
			t.Errorf("S-CS-02: refusing %q took %s, and reading it %s: want at most 20 times that", name, refusing, reading)
		}
		t.Logf("%s: refused in %s, read in %s", name, refusing, reading)
	}
}

// fastest is how long do takes when others are least in its way.
func fastest(do func()) time.Duration {
	least := time.Duration(math.MaxInt64)
	for range 5 {
		start := time.Now()
		do()
		least = min(least, time.Since(start))
	}
	return least
}
