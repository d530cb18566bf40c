// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/archtest"
)

// raceModule is a repository with a package whose tests are pure, one whose tests can start a control plane, by way
// of a helper, and a command. Each test says whether it has the race detector.
func raceModule(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	const race = "func TestRace(t *testing.T) {\n\tif cmdRace {\n\t\tt.Fatal(\"NAME has the detector\")\n\t}\n}\n"
	write(t, root, "go.mod", "module "+archtest.Module+"\n\ngo 1.25\n")
	for path, text := range map[string]string{
		"internal/testenv/a.go": "package testenv\n",
		"internal/help/a.go":    "package help\n\nimport _ \"" + serversPackage + "\"\n",
		"pure/a_test.go":        "package pure\n\nimport \"testing\"\n\n" + strings.Replace(race, "NAME", "pure", 1),
		"server/a_test.go": "package server\n\nimport (\n\t\"testing\"\n\n" +
			"\t_ \"" + archtest.Module + "/internal/help\"\n)\n\n" +
			strings.Replace(race, "NAME", "server", 1),
		"pure/race_test.go":   "//go:build race\n\npackage pure\n\nconst cmdRace = true\n",
		"pure/off_test.go":    "//go:build !race\n\npackage pure\n\nconst cmdRace = false\n",
		"server/race_test.go": "//go:build race\n\npackage server\n\nconst cmdRace = true\n",
		"server/off_test.go":  "//go:build !race\n\npackage server\n\nconst cmdRace = false\n",
		"cmd/main.go":         "package main\n\nfunc main() {}\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, root, path, text)
	}
	return root
}

// TestDetectorOfEachPackage shows which packages run with the race detector: by default those that start no servers,
// on demand all or none.
func TestDetectorOfEachPackage(t *testing.T) {
	root := raceModule(t)
	modes := map[string][2]bool{"auto": {true, false}, "on": {true, true}, "off": {false, false}}
	if noCompiler(t.Context()) != "" {
		modes = map[string][2]bool{"auto": {false, false}, "off": {false, false}}
	}
	for mode, want := range modes {
		for only, packages := range map[string]int{"": 2, "server": 1} {
			var out bytes.Buffer
			err := run(t.Context(), []string{"-race", mode, "-only", only, root}, &out)
			pure := strings.Contains(out.String(), "pure has the detector")
			server := strings.Contains(out.String(), "server has the detector")
			ran := strings.Count(out.String(), " s pure\n") + strings.Count(out.String(), " s server\n")
			if ran != packages || pure != (want[0] && packages == 2) || server != want[1] {
				t.Errorf("-race %s -only %q: got the detector in pure: %t, in server: %t, of %d packages, want %v of %d (%v):\n%s",
					mode, only, pure, server, ran, want, packages, err, out.String())
			}
		}
	}
}
