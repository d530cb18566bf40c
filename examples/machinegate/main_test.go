// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/golden"
)

// gate runs the command.
func gate(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(args, &o, &e)
	return code, o.String(), e.String()
}

func dirs(name string) []string {
	return []string{"--before", filepath.Join("testdata", name, "before"), "--after", filepath.Join("testdata", name, "after")}
}

// cases are the situations in testdata, with the exit code of each.
func cases() map[string]int {
	return map[string]int{
		"nothing": exitAccepted, "worker": exitAccepted, "new": exitAccepted, "volume-elsewhere": exitAccepted, "replica-elsewhere": exitAccepted,
		"smaller-set": exitAccepted, "three-to-two": exitAccepted, "two-to-one": exitAccepted, "entered-and-missing": exitAccepted,
		"unreferenced": exitAccepted,
		"one-to-none":  exitRejected, "unhealthy-member": exitRejected, "unknown-members": exitRejected, "local-volume": exitRejected,
		"last-replica": exitRejected, "last-of-a-role": exitRejected, "empty-set": exitRejected,
	}
}

// R-MA-25 and R-MA-26: changes on files, each with what is said of every machine: what breaks the quorum or loses data is rejected, and a machine that is only
// missing is reported, and does not end.
func TestChangesOnFiles(t *testing.T) {
	for name, want := range cases() {
		t.Run(name, func(t *testing.T) {
			code, out, errs := gate(dirs(name)...)
			if code != want || errs != "" {
				t.Errorf("exit code %d, want %d; %s", code, want, errs)
			}
			golden.Check(t, name+".txt", out)
		})
	}
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, there := cases()[e.Name()]; e.IsDir() && !there {
			t.Errorf("testdata/%s is no case", e.Name())
		}
	}
}

// R-MA-26: a machine of the control plane that is missing from the change and was not entered never ends, whatever else the change does.
func TestUnreferencedNeverEnds(t *testing.T) {
	_, out, _ := gate(append(dirs("unreferenced"), "-o", "json")...)
	if strings.Contains(out, `"ends"`) || strings.Count(out, `"unreferenced"`) != 2 {
		t.Errorf("R-MA-26: the report is %s", out)
	}
}

// The report as JSON, and findings that are taken for something else.
func TestOutputAndSeverities(t *testing.T) {
	code, out, _ := gate(append(dirs("local-volume"), "-o", "json")...)
	if code != exitRejected {
		t.Errorf("exit code %d", code)
	}
	golden.Check(t, "local-volume.json", out)
	if code, out, _ = gate(append(dirs("local-volume"), "--as", "LocalData=Warn")...); code != exitAccepted || !strings.Contains(out, "1 warned of") {
		t.Errorf("as a warning: exit code %d, %s", code, out)
	}
	if code, _, _ = gate(append(dirs("three-to-two"), "--as", "Quorum=Block")...); code != exitRejected {
		t.Errorf("as a refusal: exit code %d", code)
	}
}

// What can't be read is not judged: exit code 2, with the file, the document and the field.
func TestBadInput(t *testing.T) {
	const machine = "apiVersion: belay.dev/v1alpha1\nkind: Machine\nmetadata: {name: a}\n"
	for text, want := range map[string]string{
		"{":                             "document 1",
		machine + "spec: {rolse: []}\n": `field "spec.rolse" is not known: want`,
		machine + "---\n" + machine:     `document 2: "default/a" is there twice`,
		"kind: Machine\n":               "no apiVersion",
		"apiVersion: belay.dev/v1alpha1\nkind: Engine\n":                                   `no kind "Engine"`,
		"apiVersion: belay.dev/v1alpha1\nkind: Machine\n":                                  "metadata.name is empty",
		"apiVersion: machinegate.belay.dev/v1\nkind: Members\nmembers: [{machine: c0}]\n":  `members[0].machine "c0": want namespace/name`,
		"apiVersion: machinegate.belay.dev/v1\nkind: Others\n":                             "want the kind Members",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: belay.dev/v1alpha1, kind: X}]\n": "items[0]",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := gate("--before", dir, "--after", dir)
		if code != exitUsage || out != "" || !strings.Contains(errs, want) || !strings.Contains(errs, "x.yaml") {
			t.Errorf("%q: exit code %d, %q, want %q", text, code, errs, want)
		}
	}
	for _, args := range [][]string{
		nil, {"--before", "testdata"}, append(dirs("worker"), "-o", "xml"), append(dirs("worker"), "--as", "Luck=Warn"), append(dirs("worker"), "--as", "Role=No"),
		{"--before", "nowhere", "--after", "nowhere"}, append(dirs("worker"), "more"),
	} {
		if code, _, errs := gate(args...); code != exitUsage || errs == "" {
			t.Errorf("%q: exit code %d, %q", args, code, errs)
		}
	}
}
