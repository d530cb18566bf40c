// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/belayproject/belay/machine/provider/local"
)

// A config that can't be is refused with the field's name, and no value of env or file is said (R-MA-08).
func TestConfigIsChecked(t *testing.T) {
	const secret = "value-of-a-secret"
	file := func(path, mode string) []local.File { return []local.File{{Path: path, Mode: mode, Content: secret}} }
	for want, change := range map[string]func(c *local.Config){
		"":                        func(*local.Config) {},
		"command: ":               func(c *local.Config) { c.Command = nil },
		"command[0]: ":            func(c *local.Config) { c.Command = []string{"bin/x"} },
		`command[0]: "files/b"`:   func(c *local.Config) { c.Command, c.Files = []string{"files/b"}, file("a", "") },
		"command[1]: ":            func(c *local.Config) { c.Command = []string{"x", "a\x00"} },
		`env: "BELAY_MACHINE"`:    func(c *local.Config) { c.Env = map[string]string{"BELAY_MACHINE": secret} },
		`env: "A=B"`:              func(c *local.Config) { c.Env = map[string]string{"A=B": secret} },
		`the value of "A"`:        func(c *local.Config) { c.Env = map[string]string{"A": secret + "\x00"} },
		`files[0].path: "../a"`:   func(c *local.Config) { c.Files = file("../a", "") },
		`files[0].path: "/a"`:     func(c *local.Config) { c.Files = file("/a", "") },
		`files[0].path: "."`:      func(c *local.Config) { c.Files = file(".", "") },
		`files[0].path: ""`:       func(c *local.Config) { c.Files = file("", "") },
		`files[0].path: "a//b"`:   func(c *local.Config) { c.Files = file("a//b", "") },
		"files[0].mode: \"1777\"": func(c *local.Config) { c.Files = file("a", "1777") },
		"files[0].mode: \"0\"":    func(c *local.Config) { c.Files = file("a", "0") },
		"files[0].mode: \"rw\"":   func(c *local.Config) { c.Files = file("a", "rw") },
		"there twice":             func(c *local.Config) { c.Files = append(file("a", ""), file("a", "")...) },
		"which is a file":         func(c *local.Config) { c.Files = append(file("a/b/c", ""), file("a", "")...) },
		"want at most 1048576":    func(c *local.Config) { c.Files = []local.File{{Path: "a", Content: strings.Repeat("x", 1<<20+1)}} },
		`disks[0]: "A"`:           func(c *local.Config) { c.Disks = []string{"A"} },
		`disks[0]: ".."`:          func(c *local.Config) { c.Disks = []string{".."} },
		`disks[1]: "a"`:           func(c *local.Config) { c.Disks = []string{"a", "a"} },
		"disks: there are 17":     func(c *local.Config) { c.Disks = make([]string, 17) },
		`namespaces: "Some"`:      func(c *local.Config) { c.Namespaces = "Some" },
		`stopSignal: "TERM"`:      func(c *local.Config) { c.StopSignal = "TERM" },
		`reloadSignal: "SIGKILL"`: func(c *local.Config) { c.ReloadSignal = "SIGKILL" },
		"graceSeconds: -1":        func(c *local.Config) { c.GraceSeconds = -1 },
		"graceSeconds: 3601":      func(c *local.Config) { c.GraceSeconds = 3601 },
		"offers.kubelets[1]: ":    func(c *local.Config) { c.Offers.Kubelets = []string{"v1.36.3", ""} },
		"offers.runtimes: ":       func(c *local.Config) { c.Offers.Runtimes = map[string][]string{"": nil} },
		`offers.runtimes["a"][0]`: func(c *local.Config) { c.Offers.Runtimes = map[string][]string{"a": {""}} },
	} {
		c := local.Config{Command: []string{"/bin/true"}}
		change(&c)
		c.Default()
		err := c.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q in it", err, want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error says a value: %v", err)
		}
	}
}

// A config that is taken is taken as it is written again, and none makes a path that leads out.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"command":["a"],"files":[{"path":"a/b","mode":"0600"}],"disks":["x"],"graceSeconds":5}`))
	f.Add([]byte(`{"command":["files/../x"],"files":[{"path":"../x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c local.Config
		if json.Unmarshal(data, &c) != nil {
			return
		}
		c.Default()
		if c.Validate() != nil {
			return
		}
		for _, file := range c.Files {
			if strings.HasPrefix(file.Path, "/") || strings.Contains("/"+file.Path+"/", "/../") || strings.Contains(file.Path, "//") {
				t.Errorf("path %q was taken", file.Path)
			}
		}
		for _, d := range c.Disks {
			if strings.ContainsAny(d, "/.") {
				t.Errorf("disk %q was taken", d)
			}
		}
		written, err := json.Marshal(c)
		var again local.Config
		if err == nil {
			err = json.Unmarshal(written, &again)
		}
		if err == nil {
			again.Default()
			err = again.Validate()
		}
		if err != nil {
			t.Errorf("written again as %q: %v", written, err)
		}
	})
}
