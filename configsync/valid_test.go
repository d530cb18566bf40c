// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
)

var goodDigest = "sha256:" + strings.Repeat("0a", 32)

// R-CS-29: what is neither empty nor invalid is correct.
func TestSpecIsCorrect(t *testing.T) {
	for name, s := range map[string]configsync.Spec{
		"with UID":          {Namespace: "kube-system", Name: "node.config-1", UID: someUID},
		"with digest":       {Namespace: "a", Name: "b", Digest: goodDigest},
		"Follow":            {Namespace: "a", Name: "b", Policy: configsync.Follow},
		"with key":          {Namespace: "a", Name: "b", Key: ".Kube_let-1"},
		"nothing but names": {Namespace: "a", Name: "b"}, // whether the object is immutable shows when it is fetched
	} {
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// R-CS-22 to R-CS-25: invalid, with the field. R-CS-23: not nil and without content is invalid, not empty. R-CS-13:
// no name is a path.
func TestSpecIsInvalid(t *testing.T) {
	ok := configsync.Spec{Namespace: "a", Name: "b", UID: "u", Key: "k", Digest: goodDigest}
	for _, c := range []struct {
		name, field string
		change      func(*configsync.Spec)
	}{
		{"no namespace", "namespace", func(s *configsync.Spec) { s.Namespace = "" }},
		{"no name", "name", func(s *configsync.Spec) { s.Name = "" }},
		{"namespace climbs", "namespace", func(s *configsync.Spec) { s.Namespace = "../x" }},
		{"namespace with dot", "namespace", func(s *configsync.Spec) { s.Namespace = "a.b" }},
		{"namespace in capitals", "namespace", func(s *configsync.Spec) { s.Namespace = "Kube" }},
		{"long namespace", "namespace", func(s *configsync.Spec) { s.Namespace = strings.Repeat("a", 64) }},
		{"name climbs", "name", func(s *configsync.Spec) { s.Name = "../../etc/passwd" }},
		{"name has a slash", "name", func(s *configsync.Spec) { s.Name = "a/b" }},
		{"name with empty part", "name", func(s *configsync.Spec) { s.Name = "a..b" }},
		{"name ends in a dash", "name", func(s *configsync.Spec) { s.Name = "a-" }},
		{"long name", "name", func(s *configsync.Spec) { s.Name = strings.Repeat("a", 254) }},
		{"UID climbs", "uid", func(s *configsync.Spec) { s.UID = "a/../b" }},
		{"UID of dots", "uid", func(s *configsync.Spec) { s.UID = ".." }},
		{"UID with two dots", "uid", func(s *configsync.Spec) { s.UID = "a..b" }},
		{"key climbs", "key", func(s *configsync.Spec) { s.Key = "../kubelet" }},
		{"key is a dot", "key", func(s *configsync.Spec) { s.Key = "." }},
		{"key of a projection", "key", func(s *configsync.Spec) { s.Key = "..data" }},
		{"key with a NUL", "key", func(s *configsync.Spec) { s.Key = "a\x00" }},
		{"long key", "key", func(s *configsync.Spec) { s.Key = strings.Repeat("k", 254) }},
		{"bare digest", "digest", func(s *configsync.Spec) { s.Digest = strings.Repeat("0a", 32) }},
		{"short digest", "digest", func(s *configsync.Spec) { s.Digest = goodDigest[:70] }},
		{"digest in capitals", "digest", func(s *configsync.Spec) { s.Digest = strings.ToUpper(goodDigest) }},
		{"policy in lower case", "policy", func(s *configsync.Spec) { s.Policy = "follow" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ok
			c.change(&s)
			var invalid *configsync.InvalidError
			if err := s.Validate(); !errors.As(err, &invalid) || invalid.Field != c.field || len(err.Error()) > 400 {
				t.Errorf("Validate = %v, want an InvalidError at %q", err, c.field)
			}
		})
	}
}

// R-CS-24, R-CS-79: the text that people know and search for.
func TestSpecThatNamesNothing(t *testing.T) {
	want := "invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil"
	if err := (configsync.Spec{Generation: 3, Policy: configsync.Follow}).Validate(); err == nil || err.Error() != want {
		t.Errorf("Validate = %v, want %s", err, want)
	}
}

// R-CS-13: a UID names a checkpoint; it must be one safe element of a path.
func TestValidateUID(t *testing.T) {
	for _, uid := range []string{someUID, "a", "0", "a.b-c", strings.Repeat("a", 100)} {
		if err := configsync.ValidateUID(uid); err != nil {
			t.Errorf("%q: %v", uid, err)
		}
	}
	for _, uid := range []string{"", ".", "..", "a..b", ".a", "-a", "a-", "A", "a b", "a/b", "a\\b", "a\x00", "ä", "a\n", "a_b", strings.Repeat("a", 101)} {
		if configsync.ValidateUID(uid) == nil {
			t.Errorf("%q is taken", uid)
		}
	}
}

// Whatever is accepted is one harmless element of a path in each of its parts.
// S-CS-01.
func FuzzSpecValidate(f *testing.F) {
	f.Add("kube-system", "kubelet-1", someUID, "kubelet", goodDigest, "")
	f.Add("..", "../x", "a/b", "..data", "sha256:", "Follow")
	f.Fuzz(func(t *testing.T, namespace, name, uid, key, digest, policy string) {
		err := configsync.Spec{
			Namespace: namespace, Name: name, UID: uid, Key: key, Digest: digest, Policy: configsync.Policy(policy),
		}.Validate()
		var invalid *configsync.InvalidError
		if err != nil {
			if !errors.As(err, &invalid) || len(err.Error()) > 600 {
				t.Fatalf("%v is no short InvalidError", err)
			}
			return
		}
		for _, s := range []string{namespace, name, uid, key} {
			if s != "" && (filepath.Base(s) != s || !filepath.IsLocal(s) || s == "." || len(s) > 253 || strings.ContainsAny(s, "/\\\x00\n")) {
				t.Fatalf("%q is accepted and no harmless element of a path", s)
			}
		}
		if len(digest) != 0 && len(digest) != 71 || namespace == "" || name == "" {
			t.Fatalf("accepted digest %q of %q/%q", digest, namespace, name)
		}
	})
}
