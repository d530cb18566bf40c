// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/belayproject/belay/machine/provider"
)

func TestToken(t *testing.T) {
	// By hand: printf %s prod | sha256sum, and the same of the UID.
	const want = "6754af96-20ae3ec4abb5cacb-7"
	if got := provider.Token("prod", "0c9f", 7); got != want {
		t.Errorf("Token = %q, want %q", got, want)
	}
	seen := map[string]bool{}
	for _, cluster := range []string{"", "a", "b"} {
		for _, uid := range []string{"", "a", "b"} {
			for _, n := range []int64{-1, 0, 1, 10, 1 << 62} {
				token := provider.Token(cluster, uid, n)
				if err := provider.CheckToken(token); err != nil || seen[token] {
					t.Errorf("Token(%q, %q, %d) = %q: %v, known: %v", cluster, uid, n, token, err, seen[token])
				}
				seen[token] = true
			}
		}
	}
}

func TestTokenOf(t *testing.T) {
	for _, c := range []struct{ id, want string }{
		{provider.ProviderID("fake", "a", "t-1"), "t-1"},
		{provider.ProviderID("fake", "", "t-1"), "t-1"},
		{provider.ProviderID("fake", "a/b", "t-1"), "t-1"},
		{"fake:///a/t-1", "t-1"},
		{"fake://host/t-1", "t-1"},
		{"fake://t-1", ""}, // a host, and no path
		{"t-1", ""},
		{"a/t-1", ""},
		{"", ""},
		{"fake:///a/", ""},
		{"fake:///a/T", ""},
		{"fake:///a/..", ""},
		{"fake:///a/t?x", ""},
	} {
		if got := provider.TokenOf(c.id); got != c.want {
			t.Errorf("TokenOf(%q) = %q, want %q", c.id, got, c.want)
		}
	}
	if got := provider.ProviderID("fake", "", "t"); got != "fake:///t" {
		t.Errorf("ProviderID without a zone = %q", got)
	}
}

func TestCheckToken(t *testing.T) {
	for _, c := range []struct{ token, want string }{
		{"a", ""}, {"0", ""}, {"a-b", ""}, {"a--b", ""}, {strings.Repeat("x", 63), ""},
		{"", `token "" has 0 bytes: want 1 to 63`},
		{strings.Repeat("x", 64), "has 64 bytes: want 1 to 63"},
		{"-a", `token "-a" begins or ends with a dash`},
		{"a-", `token "a-" begins or ends with a dash`},
		{"-", "begins or ends with a dash"},
		{"aB", `has 'B' at byte 1: want lower case letters, digits and dashes`},
		{"../etc", `has '.' at byte 0`},
		{"a/b", `has '/' at byte 1`},
		{"a_b", `has '_' at byte 1`},
		{"a\n", `has '\n' at byte 1`},
		{"é", "at byte 0"},
	} {
		err := provider.CheckToken(c.token)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("CheckToken(%q) = %v, want nil", c.token, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || provider.ClassOf(err) != provider.InvalidConfig):
			t.Errorf("CheckToken(%q) = %v, want InvalidConfig: %s", c.token, err, c.want)
		}
	}
}

// The same wish has the same digest in every process and version; another one has another.
func TestDigest(t *testing.T) {
	const empty = "b39793982fc2ef0d4fbf0629683947db393be18476c5e1a1c415e0dc35677173" // of {"versions":{},"node":{}}
	if got := (provider.Desired{}).Digest(); got != empty {
		t.Errorf("the digest of nothing is %q, was %q: every instance would seem to be changed", got, empty)
	}
	same := provider.Desired{Config: []byte{}, Roles: []string{}, Node: provider.NodeSettings{Labels: map[string]string{}}}
	if got := same.Digest(); got != empty {
		t.Errorf("empty and nil differ: %q", got)
	}
	seen := map[string]bool{}
	for _, d := range []provider.Desired{
		{}, desired("{}"), desired("{ }"),
		{Versions: provider.Versions{Kubelet: "v1.36.3"}},
		{Versions: provider.Versions{Runtime: provider.Runtime{Name: "v1.36.3"}}},
		{Roles: []string{"a", "b"}}, {Roles: []string{"b", "a"}},
		{Node: provider.NodeSettings{Labels: map[string]string{"a": "b"}}},
		{Node: provider.NodeSettings{Annotations: map[string]string{"a": "b"}}},
		{Node: provider.NodeSettings{Taints: []provider.Taint{{Key: "a"}}}},
	} {
		if seen[d.Digest()] {
			t.Errorf("%+v has the digest of another one", d)
		}
		seen[d.Digest()] = true
	}
}

func FuzzToken(f *testing.F) {
	for _, s := range []string{"", "a", "-", "fake:///a/t-1", "fake://", "a/b", strings.Repeat("x", 64), "://\x00/é"} {
		f.Add(s)
	}
	valid := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	f.Fuzz(func(t *testing.T, s string) {
		ok := valid.MatchString(s) && !strings.HasSuffix(s, "\n")
		if err := provider.CheckToken(s); (err == nil) != ok {
			t.Errorf("CheckToken(%q) = %v, the pattern says %v", s, err, ok)
		} else if err != nil && len(err.Error()) > 600 {
			t.Errorf("CheckToken(%q) has an error of %d bytes", s, len(err.Error()))
		}
		token := provider.TokenOf(s)
		if token != "" && (!strings.HasSuffix(s, "/"+token) || provider.CheckToken(token) != nil) {
			t.Errorf("TokenOf(%q) = %q", s, token)
		}
		if ok && provider.TokenOf(provider.ProviderID("fake", "zone", s)) != s {
			t.Errorf("TokenOf(ProviderID(%q)) is another one", s)
		}
	})
}
