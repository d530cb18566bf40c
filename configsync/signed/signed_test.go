// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package signed_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/signed"
)

var _ configsync.Inspector = signed.Keys{}

// pair is a key that is the same in every run.
func pair(seed byte) (ed25519.PublicKey, ed25519.PrivateKey) {
	private := ed25519.NewKeyFromSeed(slices.Repeat([]byte{seed}, ed25519.SeedSize))
	return private.Public().(ed25519.PublicKey), private
}

func keys(t *testing.T, byID map[string]byte) signed.Keys {
	t.Helper()
	all := map[string]ed25519.PublicKey{}
	for id, seed := range byID {
		all[id], _ = pair(seed)
	}
	k, err := signed.NewKeys(all)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func line(t *testing.T, id string, seed byte, data map[string]string) string {
	t.Helper()
	_, private := pair(seed)
	l, err := signed.Sign(id, private, data)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func with(data map[string]string, entry, value string) map[string]string {
	data = maps.Clone(data)
	data[entry] = value
	return data
}

// One good signature by a key that the node has is enough; all else is refused with the names of keys, and none of the data.
func TestOneGoodSignatureIsNeeded(t *testing.T) {
	content := map[string]string{"kubelet": "secret: 1", configsync.KeyTrialDuration: "10m"}
	a, b := line(t, "a", 1, content), line(t, "b", 2, content)
	trusted := keys(t, map[string]byte{"a": 1, "old.key-1": 3})
	for name, c := range map[string]struct {
		keys signed.Keys
		data map[string]string
		want string
	}{
		"good":                     {trusted, with(content, signed.Entry, a), ""},
		"one of two":               {trusted, with(content, signed.Entry, "# by two\n"+b+"\n\n "+a+" \r\n"), ""},
		"none":                     {trusted, content, "signature: entry \"signatures\" holds none"},
		"comments":                 {trusted, with(content, signed.Entry, "# "+a), "signature: entry \"signatures\" holds none"},
		"another key":              {trusted, with(content, signed.Entry, b), "signature: none is by a key that this node trusts; it names \"b\""},
		"the name of another":      {trusted, with(content, signed.Entry, line(t, "a", 2, content)), "signature: that by a key which this node trusts does not fit the content; it names \"a\""},
		"a key under another name": {keys(t, map[string]byte{"a": 2, "b": 1}), with(content, signed.Entry, a), "signature: that by a key which this node trusts does not fit the content; it names \"a\""},
		"changed":                  {trusted, with(with(content, signed.Entry, a), "kubelet", "secret: 2"), "signature: that by a key which this node trusts does not fit the content; it names \"a\""},
		"another trial":            {trusted, with(with(content, signed.Entry, a), configsync.KeyTrialDuration, "1s"), "signature: that by a key which this node trusts does not fit the content; it names \"a\""},
		"one entry more":           {trusted, with(with(content, signed.Entry, a), "more", "x"), "signature: that by a key which this node trusts does not fit the content; it names \"a\""},
		"no keys":                  {signed.Keys{}, with(content, signed.Entry, a), "signature: this node trusts no key; it names \"a\""},
		"no line":                  {trusted, with(content, signed.Entry, a+"\nsecret"), "signature: entry \"signatures\", line 2: must be the ID of a key, a space and an Ed25519 signature in base64"},
		"too short":                {trusted, with(content, signed.Entry, a[:len(a)-4]), "signature: entry \"signatures\", line 1: must be"},
		"a path as a name":         {trusted, with(content, signed.Entry, "../"+a), "signature: entry \"signatures\", line 1: must be"},
		"too many":                 {trusted, with(content, signed.Entry, strings.Repeat(b+"\n", 16)+a), "signature: entry \"signatures\" has more than 16 signatures"},
		"too much":                 {trusted, with(content, signed.Entry, strings.Repeat("#\n", 9000)+a), "signature: entry \"signatures\" has 18"},
	} {
		err := c.keys.Inspect(t.Context(), "kubelet", configsync.Object{UID: "u", Data: c.data})
		var unsigned *signed.UnsignedError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v, want that it is good", name, err)
		case c.want != "" && (!errors.As(err, &unsigned) || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: %v holds data", name, err)
		}
	}
}

// A new key is laid beside the old one, and the old one taken away: what each signed is good as long as its key is there.
func TestRotation(t *testing.T) {
	content := map[string]string{"kubelet": "x"}
	old, next := with(content, signed.Entry, line(t, "old", 1, content)), with(content, signed.Entry, line(t, "new", 2, content))
	for _, c := range []struct {
		keys             map[string]byte
		oldGood, newGood bool
	}{
		{map[string]byte{"old": 1}, true, false},
		{map[string]byte{"old": 1, "new": 2}, true, true},
		{map[string]byte{"new": 2}, false, true},
	} {
		k := keys(t, c.keys)
		errOld := k.Inspect(t.Context(), "", configsync.Object{Data: old})
		errNew := k.Inspect(t.Context(), "", configsync.Object{Data: next})
		if (errOld == nil) != c.oldGood || (errNew == nil) != c.newGood {
			t.Errorf("with %q: old %v, new %v", k.IDs(), errOld, errNew)
		}
	}
}

// What is signed is part of the API: others compute it.
func TestMessageIsStable(t *testing.T) {
	data := map[string]string{"b": "", "a": "x"}
	want := "belay.dev/config/v1 " + configsync.DigestOf(data)
	for _, d := range []map[string]string{data, with(data, signed.Entry, "anything")} {
		if got := string(signed.Message(d)); got != want {
			t.Errorf("message %q, want %q", got, want)
		}
	}
	if l := line(t, "k", 7, data); l != goldenLine {
		t.Errorf("line %q, want %q", l, goldenLine)
	}
}

// goldenLine is the signature of {"a": "x", "b": ""} with the key whose seed is 32 times 7.
const goldenLine = "k QlKcoHsV3g6G3BMruGUu7moGISark/UxX5kVXvBDzRDAi6TNmAchR0OqRlCOc6ESptizKdObrPYcld2janZdDg=="

func write(t *testing.T, dir, name string, text []byte, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func pemOf(t *testing.T, seed byte) (public, private []byte) {
	t.Helper()
	a, b := pair(seed)
	der, err := x509.MarshalPKIXPublicKey(a)
	if err != nil {
		t.Fatal(err)
	}
	public = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	if der, err = x509.MarshalPKCS8PrivateKey(b); err != nil {
		t.Fatal(err)
	}
	return public, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Keys come from the node's disk alone, all of them or none.
func TestLoadIsAllOrNothing(t *testing.T) {
	public, private := pemOf(t, 1)
	fresh := func() string {
		dir := t.TempDir()
		write(t, dir, "release-2026.pem", public, 0o644)
		write(t, dir, "README", []byte("no key"), 0o666)
		write(t, dir, ".hidden.pem", []byte("no key"), 0o600)
		return dir
	}
	k, err := signed.Load(fresh())
	content := map[string]string{"a": "b"}
	if err != nil || !slices.Equal(k.IDs(), []string{"release-2026"}) {
		t.Fatalf("%q, %v", k.IDs(), err)
	}
	if key, err := signed.ParsePrivateKey(private); err != nil {
		t.Error(err)
	} else if l, err := signed.Sign("release-2026", key, content); err != nil || k.Inspect(t.Context(), "", configsync.Object{Data: with(content, signed.Entry, l)}) != nil {
		t.Errorf("what was signed with the private key is not good: %v", err)
	}
	for want, spoil := range map[string]func(dir string){
		"file \"b.pem\": must hold one PEM block of type PUBLIC KEY": func(d string) { write(t, d, "b.pem", private, 0o600) },
		"file \"c.pem\": must hold one PEM block":                    func(d string) { write(t, d, "c.pem", slices.Concat(public, public), 0o600) },
		"file \"d.pem\": mode -rw-rw-r--: must not be writable":      func(d string) { write(t, d, "d.pem", public, 0o664) },
		"file \"e.pem\": must have at most":                          func(d string) { write(t, d, "e.pem", make([]byte, 20000), 0o600) },
		"ID \"F\" must be 1 to 64 of":                                func(d string) { write(t, d, "F.pem", public, 0o600) },
		"mode drwxrwxrwx: must not be writable":                      func(d string) { _ = os.Chmod(d, 0o777) },
		"no such file":                                               func(d string) { _ = os.RemoveAll(d) },
		"file \"g.pem\"":                                             func(d string) { _ = os.Symlink("/etc/hostname", filepath.Join(d, "g.pem")) },
	} {
		dir := fresh()
		spoil(dir)
		if k, err := signed.Load(dir); err == nil || !strings.Contains(err.Error(), want) || len(k.IDs()) > 0 {
			t.Errorf("%q, %v; want %q and no key", k.IDs(), err, want)
		}
	}
	if _, err := signed.ParsePrivateKey(public); err == nil {
		t.Error("a public key is taken for a private one")
	}
}

func TestSignRefuses(t *testing.T) {
	_, private := pair(1)
	if _, err := signed.Sign("A b", private, nil); err == nil || !strings.Contains(err.Error(), "key ID \"A b\" must be") {
		t.Errorf("a wrong ID: %v", err)
	}
	if _, err := signed.Sign("a", private[:5], nil); err == nil || !strings.Contains(err.Error(), "has 5 bytes") {
		t.Errorf("half a key: %v", err)
	}
	if _, err := signed.NewKeys(map[string]ed25519.PublicKey{"a": nil}); err == nil || !strings.Contains(err.Error(), "\"a\" has 0 bytes") {
		t.Errorf("no key: %v", err)
	}
}
