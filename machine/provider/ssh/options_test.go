// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/machine/provider"
)

// Hosts and options that can't be are refused before anything is done.
func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]Options{
		"nothing":            {},
		"both":               {Hosts: []Host{{Name: "a"}}, Inventory: File("x")},
		"no name":            {Hosts: []Host{{}}},
		"bad name":           {Hosts: []Host{{Name: "A"}}},
		"slash":              {Hosts: []Host{{Name: "a/b"}}},
		"twice":              {Hosts: []Host{{Name: "a"}, {Name: "a", Port: 1}}},
		"one place":          {Hosts: []Host{{Name: "a", Address: "x"}, {Name: "b", Address: "x"}}},
		"an option":          {Hosts: []Host{{Name: "a", Address: "-oProxyCommand=x"}}},
		"an option as user":  {Hosts: []Host{{Name: "a", User: "-x"}}},
		"blank":              {Hosts: []Host{{Name: "a", Address: "b c"}}},
		"port":               {Hosts: []Host{{Name: "a", Port: 65536}}},
		"relative directory": {Hosts: []Host{{Name: "a", Directory: "x"}}},
		"root":               {Hosts: []Host{{Name: "a", Directory: "/"}}},
		"dots":               {Hosts: []Host{{Name: "a", Directory: "/x/../y"}}},
		"control directory":  {Hosts: []Host{{Name: "a"}}, ControlDir: "a b"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
	if _, err := New(Options{Hosts: []Host{{Name: "a.example"}, {Name: "b", Address: "10.0.0.1"}}}); err != nil {
		t.Errorf("good ones: %v", err)
	}
}

// What checks who is there comes before whatever the user adds: ssh takes the first.
func TestArguments(t *testing.T) {
	c, err := newCore(Options{Hosts: []Host{{Name: "a", User: "u", Port: 7}}, Args: []string{"-o", "StrictHostKeyChecking=no"}, KnownHosts: "k", ControlDir: "d"})
	if err != nil {
		t.Fatal(err)
	}
	args := c.arguments(c.pool[0])
	ours := slices.Index(args, "StrictHostKeyChecking=yes")
	if ours < 0 || ours > slices.Index(args, "StrictHostKeyChecking=no") || args[len(args)-3] != "--" {
		t.Errorf("the arguments are %q", args)
	}
	for _, want := range []string{"BatchMode=yes", "UserKnownHostsFile=k", "ControlPath=d/%C", "u", "7"} {
		if !slices.Contains(args, want) {
			t.Errorf("the arguments are %q, without %q", args, want)
		}
	}
	if got := args[len(args)-2:]; got[0] != "a" || got[1] != "sh -s" {
		t.Errorf("the command is %q", got)
	}
}

// The file of an inventory is read at each call; one that can't be read is Unavailable, as nothing is known then.
func TestFile(t *testing.T) {
	p := newPool(t, 2)
	name := filepath.Join(t.TempDir(), "hosts.json")
	o := p.settings().options()
	o.Hosts, o.Inventory = nil, File(name)
	c, err := p.settings().with(o)
	if err != nil {
		t.Fatal(err)
	}
	count := func(text string) (int, error) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := typed(c).Hosts(t.Context())
		return len(all), err
	}
	one, two := `{"name": "h0", "directory": "/x/0"}`, `{"name": "h1", "directory": "/x/1"}`
	for text, want := range map[string]int{"[]": 0, "[" + one + "]": 1, "[" + one + "," + two + "]": 2} {
		if n, err := count(text); n != want || err != nil {
			t.Errorf("%s: %d hosts, %v, want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "{}", "[" + one + "," + one + "]", `[{"name": "h0", "host": "x"}]`, "[] []"} {
		if _, err := count(text); provider.ClassOf(err) != provider.Unavailable {
			t.Errorf("%s: %v, want Unavailable", text, err)
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := typed(c).Get(t.Context(), provider.Ref{Token: "t"}); provider.ClassOf(err) != provider.Unavailable {
		t.Errorf("no file: %v, want Unavailable", err)
	}
}

// A config that can't be made is refused by field.
func TestConfigRefuses(t *testing.T) {
	for field, c := range map[string]Config{
		"bootstrap":      {Stop: "x"},
		"stop":           {Bootstrap: "x", Stop: " \n"},
		"update":         {Bootstrap: "x", Stop: "x", Update: "a\x00"},
		"timeoutSeconds": {Bootstrap: "x", Stop: "x", TimeoutSeconds: -1},
		"scripts":        {Bootstrap: strings.Repeat("x", maxScripts), Stop: "x"},
	} {
		c.Default()
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, want an error that names it", field, err)
		}
	}
}

// Keys of a Secret become names of files, and nothing else does.
func TestJoinKeys(t *testing.T) {
	for _, key := range []string{"", ".", "..", "../x", "a/b", "a b", "a\n", ".ssh", "x.new", strings.Repeat("a", 254)} {
		if err := checkJoin(provider.Join{Bootstrap: map[string][]byte{key: nil}}); provider.ClassOf(err) != provider.InvalidConfig {
			t.Errorf("%q: %v, want InvalidConfig", key, err)
		}
	}
	if err := checkJoin(provider.Join{Bootstrap: map[string][]byte{"ca.crt": nil, "user_data-2": nil}}); err != nil {
		t.Error(err)
	}
}

// A text is one word for a shell, whatever is in it.
func TestQuote(t *testing.T) {
	if got := quote("a'b $(x)\n"); got != `'a'\''b $(x)`+"\n'" {
		t.Errorf("got %s", got)
	}
}
